// Reads arrays over HTTP with zarrita: lines {name, url, format} on standard input; OUT/NAME becomes the
// elements in C order, little-endian; of a string a uint32 of its bytes and the bytes. One line of JSON for each.
//
//   node zarrita_http.mjs OUT
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as zarr from "zarrita";

function* places(shape, stride) {
    const count = shape.reduce((a, b) => a * b, 1);
    const index = shape.map(() => 0);
    for (let i = 0; i < count; i++) {
        yield index.reduce((at, n, axis) => at + n * stride[axis], 0);
        for (let axis = shape.length - 1; axis >= 0 && ++index[axis] === shape[axis]; axis--) index[axis] = 0;
    }
}

function packed({ data, stride }, shape) {
    const parts = [];
    if (Array.isArray(data)) {
        for (const at of places(shape, stride)) {
            const bytes = Buffer.from(data[at], "utf8");
            const size = Buffer.alloc(4);
            size.writeUInt32LE(bytes.length);
            parts.push(size, bytes);
        }
        return Buffer.concat(parts);
    }
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const size = bytes.length / data.length;
    const out = new Uint8Array(bytes.length);
    let i = 0;
    for (const at of places(shape, stride)) out.set(bytes.subarray(at * size, at * size + size), size * i++);
    return out;
}

process.on("unhandledRejection", () => {});
const out = process.argv[2];
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
    const { name, url, format } = JSON.parse(line);
    try {
        const open = format === 2 ? zarr.open.v2 : zarr.open.v3;
        const array = await open(new zarr.FetchStore(url), { kind: "array" });
        const shape = array.shape;
        writeFileSync(join(out, name), shape.length === 0 ? packed(await array.getChunk([]), [])
            : packed(await zarr.get(array), shape));
        console.log(JSON.stringify({ name }));
    } catch (error) {
        console.log(JSON.stringify({ name, error: `${error.message} ${error.cause?.message ?? ""}` }));
    }
}
