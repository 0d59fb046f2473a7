/* ask.js - what all scripts of the page share, and how they ask the server. The build puts the files one after the other:
 * ask, meaning, colours, view, array, versions, page. Texts of a repository go into text nodes and attributes, never into
 * markup. */
"use strict";
const UNCOMMITTED = ":uncommitted";
const $ = (selector, at = document) => at.querySelector(selector);
const $$ = (selector, at = document) => [...at.querySelectorAll(selector)];
const fill = (e, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {}))
        if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
        else if (value !== null && value !== undefined && value !== false)
            e.setAttribute(name, value === true ? "" : value);
    e.append(...children.flat().filter(c => c !== null && c !== undefined));
    return e;
};
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const vg = (name, attributes, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
const bdi = text => el("bdi", null, String(text));
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

let query = new URLSearchParams(location.search);
const say = text => {
    $("#status").textContent = text;
};
const countText = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;
const shorten = (text, n) => (text.length > n ? text.slice(0, n) + " …" : text);

/* ---- asking -------------------------------- */

const paramsOf = over => {
    const out = new URLSearchParams();
    if (query.get("file")) out.set("file", query.get("file"));
    for (const [name, value] of Object.entries(over))
        if (value !== "" && value !== null && value !== undefined) out.set(name, value);
    return out;
};
const hrefOf = over => "?" + paramsOf(over);

async function ask(what, over) {
    const reply = await fetch(`api/${what}?${paramsOf(over)}`);
    if (reply.ok && reply.headers.get("content-type").startsWith("application/octet-stream"))
        return numbersOf(await reply.arrayBuffer());
    let data;
    try {
        data = await reply.json();
    } catch {
        throw new Error(`the server answered ${reply.status}`);
    }
    if (!reply.ok) throw new Error(data.error || `the server answered ${reply.status}`);
    return what === "slice" ? { head: data, raw: data.values, text: true } : data;
}

const ARRAYS = {
    bool: Uint8Array,
    uint8: Uint8Array,
    int8: Int8Array,
    uint16: Uint16Array,
    int16: Int16Array,
    uint32: Uint32Array,
    int32: Int32Array,
    float32: Float32Array,
    float64: Float64Array,
    int64: BigInt64Array,
    uint64: BigUint64Array,
};

function half(bits) {
    const sign = bits & 0x8000 ? -1 : 1,
        exponent = (bits >> 10) & 31,
        part = bits & 1023;
    if (exponent === 31) return part ? NaN : sign * Infinity;
    return sign * (exponent ? 2 ** (exponent - 25) * (1024 + part) : 2 ** -24 * part);
}

/* A line of JSON, then little-endian elements from a multiple of 8 bytes on. */
function numbersOf(buffer) {
    const bytes = new Uint8Array(buffer),
        end = bytes.indexOf(10);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
    const from = end + 1,
        type = head.dtype;
    if (type === "float16") return { head, raw: Float32Array.from(new Uint16Array(buffer, from), half) };
    if (type.startsWith("complex")) {
        const parts = new (type === "complex64" ? Float32Array : Float64Array)(buffer, from);
        return {
            head,
            parts,
            raw: Float64Array.from({ length: parts.length / 2 }, (_, i) => Math.hypot(parts[2 * i], parts[2 * i + 1])),
        };
    }
    return { head, raw: new ARRAYS[type](buffer, from) };
}
