// Reads and writes arrays with zarrita, from the folder where npm put its packages.
//
//   node zarrita.mjs read ROOT OUT    names on standard input: ROOT/NAME is an array,
//                                     OUT/NAME becomes its elements
//   node zarrita.mjs write ROOT IN    lines {name, doc}: the reverse
//
// Elements: C order, little-endian; of a string a uint32 of its bytes and the bytes.
// One line of JSON is printed for each array.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import FileSystemStore from "@zarrita/storage/fs";
import * as zarr from "zarrita";

// Where each element lies, in C order: the strides of a result need not be those.
function* places(shape, stride) {
    const count = shape.reduce((a, b) => a * b, 1);
    const index = shape.map(() => 0);
    for (let i = 0; i < count; i++) {
        yield index.reduce((at, n, axis) => at + n * stride[axis], 0);
        for (let axis = shape.length - 1; axis >= 0 && ++index[axis] === shape[axis]; axis--) index[axis] = 0;
    }
}

function packed({ data, stride }, shape) {
    if (Array.isArray(data)) {
        const parts = [];
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

async function read(root, out, name) {
    const array = await zarr.open.v3(new FileSystemStore(join(root, name)), { kind: "array" });
    const shape = array.shape;
    let bytes = Buffer.alloc(0);
    if (shape.length === 0) {
        bytes = packed(await array.getChunk([]), []);
    } else if (!shape.includes(0)) {
        bytes = packed(await zarr.get(array), shape);
    }
    writeFileSync(join(out, name), bytes);
    return { shape, attributes: array.attrs };
}

function texts(bytes) {
    const found = [];
    for (let at = 0; at < bytes.length;) {
        const size = bytes.readUInt32LE(at);
        found.push(bytes.toString("utf8", at + 4, at + 4 + size));
        at += 4 + size;
    }
    return found;
}

function fillValue({ data_type: type, fill_value: fill }) {
    if (type === "int64" || type === "uint64") return BigInt(fill);
    if (type.startsWith("float")) return Number(fill); // "NaN" and "Infinity" too
    return fill;
}

async function write(root, from, { name, doc }) {
    const array = await zarr.create(new FileSystemStore(join(root, name)), {
        shape: doc.shape,
        chunkShape: doc.chunk_grid.configuration.chunk_shape,
        dtype: doc.data_type,
        codecs: doc.codecs.map((codec) => ({ configuration: {}, ...codec })),
        fillValue: fillValue(doc),
        chunkSeparator: doc.chunk_key_encoding.configuration?.separator ?? "/",
        dimensionNames: doc.dimension_names,
        attributes: doc.attributes ?? {},
    });
    if (doc.shape.includes(0)) return {};
    const bytes = readFileSync(join(from, name));
    const example = await array.getChunk(doc.shape.map(() => 0)); // for its kind of data
    const data = Array.isArray(example.data) ? texts(bytes)
        : new example.data.constructor(new Uint8Array(bytes).buffer);
    const stride = doc.shape.map((_, axis) => doc.shape.slice(axis + 1).reduce((a, b) => a * b, 1));
    await zarr.set(array, null, { data, shape: doc.shape, stride });
    return {};
}

// A codec that is not there is told by a promise of its own as well, which nobody awaits.
process.on("unhandledRejection", () => {});

const [mode, root, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
    const job = mode === "write" ? JSON.parse(line) : { name: line };
    try {
        const told = mode === "write" ? await write(root, folder, job) : await read(root, folder, line);
        console.log(JSON.stringify({ name: job.name, ...told }));
    } catch (error) {
        const cause = error.cause ? `: ${error.cause.message ?? error.cause}` : "";
        console.log(JSON.stringify({ name: job.name, error: `${error.message}${cause}` }));
    }
}
