/* app.js - what the page does beyond its HTML: pictures, and moving about without loading everything again.
 * All texts of a repository go into text nodes and attributes, never into markup. */
"use strict";
(() => {
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
const say = text => { $("#status").textContent = text; };
const shorten = (text, n) => (text.length > n ? text.slice(0, n) + " …" : text);

/* ---- asking ---------------------------------------------------------------------- */

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
    try { data = await reply.json(); } catch { throw new Error(`the server answered ${reply.status}`); }
    if (!reply.ok) throw new Error(data.error || `the server answered ${reply.status}`);
    return what === "slice" ? { head: data, raw: data.values, text: true } : data;
}

const ARRAYS = { bool: Uint8Array, uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array,
    uint32: Uint32Array, int32: Int32Array, float32: Float32Array, float64: Float64Array,
    int64: BigInt64Array, uint64: BigUint64Array };

function half(bits) {
    const sign = bits & 0x8000 ? -1 : 1, exponent = bits >> 10 & 31, part = bits & 1023;
    if (exponent === 31) return part ? NaN : sign * Infinity;
    return sign * (exponent ? 2 ** (exponent - 25) * (1024 + part) : 2 ** -24 * part);
}

/* A line of JSON, then little-endian elements from a multiple of 8 bytes on. */
function numbersOf(buffer) {
    const bytes = new Uint8Array(buffer), end = bytes.indexOf(10);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
    const from = end + 1, type = head.dtype;
    if (type === "float16") return { head, raw: Float32Array.from(new Uint16Array(buffer, from), half) };
    if (type.startsWith("complex")) {
        const parts = new (type === "complex64" ? Float32Array : Float64Array)(buffer, from);
        return { head, parts, raw: Float64Array.from({ length: parts.length / 2 }, (_, i) => Math.hypot(parts[2 * i], parts[2 * i + 1])) };
    }
    return { head, raw: new ARRAYS[type](buffer, from) };
}

/* ---- what numbers mean ----------------------------------------------------------------- */

const DAY = 86400e3;
const UNITS = { days: DAY, day: DAY, d: DAY, hours: 36e5, hour: 36e5, hr: 36e5, h: 36e5, minutes: 6e4, minute: 6e4, min: 6e4,
    seconds: 1e3, second: 1e3, sec: 1e3, s: 1e3, milliseconds: 1, millisecond: 1, msec: 1, ms: 1, microseconds: 1e-3, us: 1e-3, nanoseconds: 1e-6, ns: 1e-6 };
const MONTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const pad = (n, digits) => String(Math.abs(n)).padStart(digits, "0");

function dateText(year, month, day, ms) {
    ms = Math.round(ms);
    const s = Math.floor(ms / 1000), rest = ms % 1000;
    const time = `${pad(Math.floor(s / 3600), 2)}:${pad(Math.floor(s / 60) % 60, 2)}:${pad(s % 60, 2)}` + (rest ? "." + pad(rest, 3) : "");
    return `${year < 0 ? "-" : ""}${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)} ${time}`;
}

/* Calendars whose years are all alike: days of each month. */
const EVEN = { noleap: MONTHS, "365_day": MONTHS, all_leap: MONTHS.map((n, i) => n + (i === 1)), "366_day": MONTHS.map((n, i) => n + (i === 1)),
    "360_day": Array(12).fill(30) };

function evenDays(months, year, month, day) {
    return year * months.reduce((a, b) => a + b) + months.slice(0, month - 1).reduce((a, b) => a + b, 0) + day - 1;
}
function evenDate(months, days) {
    const length = months.reduce((a, b) => a + b);
    let year = Math.floor(days / length), rest = days - year * length, month = 0;
    while (rest >= months[month]) rest -= months[month++];
    return [year, month + 1, rest + 1];
}
/* Days since 1970-01-01 of the Julian calendar's dates, and back. */
function julianDays(year, month, day) {
    const a = Math.floor((14 - month) / 12), y = year + 4800 - a, m = month + 12 * a - 3;
    return day + Math.floor((153 * m + 2) / 5) + 365 * y + Math.floor(y / 4) - 32083 - 2440588;
}
function julianDate(days) {
    const c = days + 2440588 + 32082, d = Math.floor((4 * c + 3) / 1461), e = c - Math.floor(1461 * d / 4), m = Math.floor((5 * e + 2) / 153);
    return [d - 4800 + Math.floor(m / 10), m + 3 - 12 * Math.floor(m / 10), e - Math.floor((153 * m + 2) / 5) + 1];
}
const FIRST_GREGORIAN = -141427; /* 1582-10-15 */
function utcDays(year, month, day) {
    const date = new Date(0);
    date.setUTCFullYear(year, month - 1, day);
    return Math.round(date.getTime() / DAY);
}
function daysOf(calendar, year, month, day) {
    if (EVEN[calendar]) return evenDays(EVEN[calendar], year, month, day);
    if (calendar === "julian") return julianDays(year, month, day);
    const days = utcDays(year, month, day);
    return calendar !== "proleptic_gregorian" && days < FIRST_GREGORIAN ? julianDays(year, month, day) : days;
}
function dateOf(calendar, days) {
    if (EVEN[calendar]) return evenDate(EVEN[calendar], days);
    if (calendar === "julian" || (calendar !== "proleptic_gregorian" && days < FIRST_GREGORIAN)) return julianDate(days);
    const date = new Date(days * DAY);
    return [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()];
}

/* "days since 1970-01-01": a function from numbers to texts, or null. */
function timeOf(units, calendar) {
    const parts = /^\s*(\w+)\s+since\s+([+-]?\d+)-(\d+)-(\d+)(?:[T\s]+(\d+):(\d+)(?::(\d+(?:\.\d*)?))?)?\s*(?:Z|UTC|GMT|([+-]\d\d?):?(\d\d)?)?\s*$/i.exec(units || "");
    const name = String(calendar || "standard").toLowerCase(), unit = parts && UNITS[parts[1].toLowerCase()];
    if (!unit || !(name in EVEN || ["standard", "gregorian", "proleptic_gregorian", "julian"].includes(name))) return null;
    const begin = daysOf(name, +parts[2], +parts[3], +parts[4]);
    const zone = parts[8] ? (+parts[8] * 60 + Math.sign(+parts[8]) * +(parts[9] || 0)) * 6e4 : 0;
    const clock = ((+parts[5] || 0) * 60 + (+parts[6] || 0)) * 6e4 + (+parts[7] || 0) * 1e3 - zone;
    return number => {
        const ms = clock + number * unit, days = Math.floor(ms / DAY);
        return Number.isFinite(ms) && Math.abs(days) < 1e8 ? dateText(...dateOf(name, begin + days), ms - days * DAY) : "not a time";
    };
}

const NATIVE = { Y: null, M: null, W: 7 * DAY, D: DAY, h: 36e5, m: 6e4, s: 1e3, ms: 1, us: 1e-3, "μs": 1e-3, ns: 1e-6 };
function nativeTime(type) {
    const parsed = typeof type === "string" && type.startsWith("{") ? JSON.parse(type) : type;
    if (!parsed || parsed.name !== "numpy.datetime64") return null;
    const factor = parsed.configuration.scale_factor || 1, unit = parsed.configuration.unit;
    return number => {
        if (!(Math.abs(number) < 9.2e18)) return "NaT";
        if (unit === "Y") return String(1970 + number * factor);
        if (unit === "M") return `${1970 + Math.floor(number * factor / 12)}-${pad((number * factor % 12 + 12) % 12 + 1, 2)}`;
        const ms = number * factor * NATIVE[unit], days = Math.floor(ms / DAY);
        return Math.abs(days) < 1e8 ? dateText(...dateOf("proleptic_gregorian", days), ms - days * DAY) : String(number);
    };
}

const show = n => (typeof n === "bigint" ? String(n) : Number.isNaN(n) ? "NaN" : Number.isInteger(n) || !Number.isFinite(n) ? String(n) : String(+n.toPrecision(7)));

/* How elements of a node are read: by CF's attributes, or as they are stored. */
function readerOf(node, raw) {
    const at = (node.document || node).attributes || {}, native = nativeTime(node.dtype);
    const one = v => (Array.isArray(v) && v.length === 1 ? v[0] : v);
    const scale = one(at.scale_factor), offset = one(at.add_offset);
    const missing = [at._FillValue, at.missing_value].flat().filter(v => typeof v === "number");
    const time = raw ? null : native || timeOf(at.units, at.calendar);
    const bits = at._Unsigned === "true" && /^int(8|16|32)$/.exec(node.dtype);
    const coded = typeof scale === "number" || typeof offset === "number" || missing.length > 0 || bits;
    const number = v => {
        let n = Number(v);
        if (native) return n < -9.2e18 ? NaN : n;
        if (raw) return n;
        if (missing.includes(n)) return NaN;
        if (bits && n < 0) n += 2 ** +bits[1];
        return coded ? n * (typeof scale === "number" ? scale : 1) + (typeof offset === "number" ? offset : 0) : n;
    };
    return { number, coded: Boolean(coded || (timeOf(at.units, at.calendar) && !native)), time,
        units: raw || time ? "" : typeof at.units === "string" ? at.units : "",
        text: v => (time ? time(number(v)) : coded && !raw ? show(number(v)) : show(v)) };
}

/* ---- colours --------------------------------------------------------------------------- */

function between(points, n) {
    const out = new Uint8Array(n * 3);
    for (let i = 0; i < n; i++) {
        const at = i / (n - 1) * (points.length - 1), k = Math.min(Math.floor(at), points.length - 2);
        for (let c = 0; c < 3; c++) out[3 * i + c] = Math.round(points[k][c] + (points[k + 1][c] - points[k][c]) * (at - k));
    }
    return out;
}
const VIRIDIS = "RAFURAJWRQRXRQVZRgdaRghcRgpdRgteRw1gRw5hRxBjRxFkRxNlSBRnSBZoSBdpSBhqSBpsSBttSBxuSB1vSB9wSCBxSCFzSCN0SCR1SCV2SCZ3SCh4SCl5Ryp6Ryx6Ry17Ry58Ry99RjB+RjJ+RjN/RjSARTWBRTeBRTiCRDmDRDqDRDuEQz2EQz6FQj+FQkCGQkGGQUKHQUSHQEWIQEaIP0eIP0iJPkmJPkqJPkyKPU2KPU6KPE+KPFCLO1GLO1KLOlOLOlSMOVWMOVaMOFiMOFmMN1qMN1uNNlyNNl2NNV6NNV+NNGCNNGGNM2KNM2ONMmSOMmWOMWaOMWeOMWiOMGmOMGqOL2uOL2yOLm2OLm6OLm+OLXCOLXGOLHGOLHKOLHOOK3SOK3WOKnaOKneOKniOKXmOKXqOKXuOKHyOKH2OJ36OJ3+OJ4COJoGOJoKOJoKOJYOOJYSOJYWOJIaOJIeOI4iOI4mOI4qNIouNIoyNIo2NIY6NIY+NIZCNIZGMIJKMIJKMIJOMH5SMH5WLH5aLH5eLH5iLH5mKH5qKHpuKHpyJHp2JH56JH5+IH6CIH6GIH6GHH6KHIKOGIKSGIaWFIaaFIqeFIqiEI6mDJKqDJauCJayCJq2BJ62BKK6AKa9/KrB/LLF+LbJ9LrN8L7R8MbV7MrZ6NLZ5Nbd5N7h4OLl3Orp2O7t1Pbx0P7xzQL1yQr5xRL9wRsBvSMFuSsFtTMJsTsNrUMRqUsVpVMVoVsZnWMdlWshkXMhjXsliYMpgY8tfZcteZ8xcac1bbM1abs5YcM9Xc9BWddBUd9FTetFRfNJQf9NOgdNNhNRLhtVJidVIi9ZGjtZFkNdDk9dBldhAmNg+m9k8ndk7oNo5oto3pds2qNs0qtwyrdwwsN0vst0ttd4ruN4put4ovd8mwN8lwt8jxeAhyOAgyuEfzeEd0OEc0uIb1eIa2OIZ2uMZ3eMY3+MY4uQY5eQZ5+QZ6uUa7OUb7+Uc8eUd9OYe9uYg+OYh++cj/ecl";
const ENDS = [[23, 50, 140], [90, 150, 220], [247, 247, 247], [225, 115, 80], [140, 10, 35]];
const MAPS = {
    viridis: Uint8Array.from(atob(VIRIDIS), c => c.charCodeAt(0)),
    grey: between([[0, 0, 0], [255, 255, 255]], 256),
    cividis: between([[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56]], 256),
    diverging: Uint8Array.from([...between(ENDS.slice(0, 3), 128), ...between(ENDS.slice(2), 128)]),
};
const HATCH = [[150, 150, 150], [215, 215, 215]];

const shadeIndex = (v, low, high) => {
    const at = (v / 2 - low / 2) / (high / 2 - low / 2) * 256;
    return !(at > 0) ? 0 : at >= 255 ? 255 : Math.floor(at);
};

function limitsOf(lists, how) {
    const values = [];
    for (const list of lists) {
        const step = Math.max(1, Math.floor(list.length / 65536));
        for (let i = 0; i < list.length; i += step) if (Number.isFinite(list[i])) values.push(list[i]);
    }
    if (!values.length) return [0, 1];
    const sorted = Float64Array.from(values).sort(), n = sorted.length - 1, p = how / 100;
    let low = sorted[Math.floor(n * p)], high = sorted[Math.ceil(n * (1 - p))];
    if (low === high) { low = sorted[0]; high = sorted[n]; }
    return low === high ? [low, low + 1] : [low, high];
}

/* Draws h rows of w elements, each as a block of pixels as wide and high as what it stands for; numbers, or bytes
 * of 3 or 4 channels. */
function paint(canvas, picture, look, size = 640) {
    const { w, h, values, channels } = picture, [across, down] = picture.steps || [1, 1];
    const scale = size / Math.max(w * across, h * down);
    let sx = Math.max(1, Math.floor(across * scale)), sy = Math.max(1, Math.floor(down * scale));
    if (h * sy < 48) sy = Math.ceil(48 / h);
    if (w * sx < 48) sx = Math.ceil(48 / w);
    canvas.width = w * sx;
    canvas.height = h * sy;
    Object.assign(canvas.dataset, { sx, sy, w, h });
    const context = canvas.getContext("2d"), image = context.createImageData(w * sx, h * sy), out = image.data;
    const map = MAPS[look.map];
    for (let y = 0, at = 0; y < h * sy; y++) {
        const row = Math.floor(y / sy) * w;
        for (let x = 0; x < w * sx; x++, at += 4) {
            const i = row + Math.floor(x / sx);
            out[at + 3] = 255;
            if (channels) {
                for (let c = 0; c < 3; c++) out[at + c] = values[i * channels + c];
                if (channels === 4) out[at + 3] = values[i * channels + 3];
                continue;
            }
            const v = values[i];
            if (v !== v) {
                const tone = HATCH[(x + y) % 6 < 2 ? 0 : 1];
                out[at] = tone[0]; out[at + 1] = tone[1]; out[at + 2] = tone[2];
                continue;
            }
            const k = 3 * shadeIndex(v, look.low, look.high);
            out[at] = map[k]; out[at + 1] = map[k + 1]; out[at + 2] = map[k + 2];
        }
    }
    context.putImageData(image, 0, 0);
}

/* ---- numbers of a slice ------------------------------------------------------------------ */

function sumsOf(values, raw, node) {
    let n = 0, nan = 0, fills = 0, low = Infinity, high = -Infinity, sum = 0, squares = 0;
    const fillNumber = typeof node.fill === "number" ? node.fill : node.fill === "NaN" ? NaN : typeof node.fill === "boolean" ? +node.fill : null;
    for (let i = 0; i < values.length; i++) {
        const v = values[i], r = raw ? Number(raw[i]) : v;
        if (fillNumber !== null && (r === fillNumber || (r !== r && fillNumber !== fillNumber))) fills++;
        if (v !== v) { nan++; continue; }
        n++;
        if (v < low) low = v;
        if (v > high) high = v;
        if (Number.isFinite(v)) sum += v;
    }
    const mean = n ? sum / n : NaN;
    for (let i = 0; i < values.length; i++) if (Number.isFinite(values[i])) squares += (values[i] - mean) ** 2;
    return { count: values.length, nan, fills, low: n ? low : NaN, high: n ? high : NaN, mean, std: n ? Math.sqrt(squares / n) : NaN };
}

function binsOf(values, low, high, n = 24) {
    const counts = new Array(n).fill(0), width = high - low || 1;
    if (!Number.isFinite(low) || !Number.isFinite(high)) return [];
    for (let i = 0; i < values.length; i++)
        if (Number.isFinite(values[i])) counts[Math.min(n - 1, Math.floor((values[i] - low) / width * n))]++;
    return counts.map((count, i) => ({ from: low + width * i / n, to: low + width * (i + 1) / n, count }));
}

function histogram(bins, text) {
    const most = Math.max(1, ...bins.map(b => b.count)), n = bins.length;
    return [vg("svg", { class: "histogram", viewBox: `0 0 ${n || 1} 1`, preserveAspectRatio: "none", role: "img", "aria-label": "Histogram; its numbers are in the table" },
        ...bins.map((b, i) => vg("rect", { x: i + .05, width: .9, y: 1 - b.count / most, height: b.count / most }))),
    el("details", null, el("summary", null, "Histogram as a table"), tableOf(null, ["From", "To", "Elements"], bins.map(b => [text(b.from), text(b.to), b.count])))];
}

function tableOf(caption, heads, rows) {
    return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption || heads.join(", ") },
        el("table", null, caption ? el("caption", null, caption) : null,
            el("thead", null, el("tr", null, heads.map(h => el("th", { scope: "col" }, h)))),
            el("tbody", null, rows.map(r => el("tr", null, r.map((c, i) => el(i ? "td" : "th", i ? null : { scope: "row" }, c instanceof Node ? c : bdi(c))))))));
}
const bytesText = n => {
    if (n < 1000) return `${n} B`;
    let i = -1;
    do { n /= 1000; i++; } while (n >= 999.5 && i < 5);
    return `${n < 9.95 ? n.toFixed(1) : Math.round(n)} ${["kB", "MB", "GB", "TB", "PB", "EB"][i]}`;
};
const timeText = us => new Date(us / 1000).toISOString().slice(0, 16).replace("T", " ");
const idLink = (id, text) => el("a", { href: hrefOf({ view: "overview", rev: id }), class: "id" }, text || id.slice(0, 8));

/* ---- choosing a slice ----------------------------------------------------------------------- */

/* The controls of a picture: which axes, where on the others, how it is coloured. */
class View {
    constructor(node, path, root, changed) {
        Object.assign(this, { node, path, root, changed, form: $("form", root) });
        const n = node.shape.length;
        this.shape = node.shape;
        this.index = node.shape.map(length => Math.floor(length / 2));
        this.channel = this.findChannel();
        const free = node.shape.map((_, i) => i).filter(i => i !== this.channel);
        this.x = free.length ? free[free.length - 1] : -1;
        this.y = free.length > 1 ? free[free.length - 2] : -1;
        this.texts = this.isText();
        this.whole();
        this.names = node.shape.map((_, i) => (node.dims && node.dims[i]) || `axis ${i}`);
        this.readers = node.shape.map((_, i) => node.coordinates && node.coordinates[i] && readerOf(node.coordinates[i], false));
        this.raw = false;
        this.reader = readerOf(node, false);
        if (n) this.makeAxes();
        else $(".axes", root).hidden = true;
        this.bind();
    }
    isText() {
        const type = this.node.dtype;
        return !/^(bool|u?int(8|16|32|64|[24])|float|bfloat16|complex)/.test(type) && !type.includes("datetime64") && !type.includes("timedelta64");
    }
    /* Red, green and blue: the last axis, or that of OME's channels, of 3 or 4 bytes. */
    findChannel() {
        const { shape, dims, dtype } = this.node, n = shape.length;
        const at = dims ? dims.indexOf("c") : -1;
        for (const i of [n - 1, at])
            if (n >= 3 && i >= 0 && dtype === "uint8" && (shape[i] === 3 || shape[i] === 4)) return i;
        return -1;
    }
    whole() {
        const most = this.texts ? 32 : Infinity;
        this.window = this.shape.map(length => [0, Math.min(length, most)]);
    }
    coordinate(axis, i) {
        const c = this.node.coordinates && this.node.coordinates[axis];
        if (!c || !c.values) return "";
        const v = c.values[i];
        if (v === undefined) return "";
        return typeof v === "string" ? v : this.readers[axis].text(v) + (this.readers[axis].units ? " " + this.readers[axis].units : "");
    }
    makeAxes() {
        const box = $(".axes", this.root);
        $$("label, div", box).forEach(e => e.remove());
        const choice = (title, key) => el("label", null, title + " ", el("select", { name: key, onchange: e => this.chooseAxis(key, +e.target.value) },
            this.shape.map((length, i) => el("option", { value: i, selected: this[key] === i, disabled: i === this.channel }, `${this.names[i]} (${length})`))));
        if (this.y >= 0) box.append(choice("Down", "y"));
        box.append(choice("Across", "x"));
        this.outputs = [];
        this.shape.forEach((length, axis) => {
            if (axis === this.x || axis === this.y || axis === this.channel) return;
            const most = Math.max(0, length - 1), output = el("output", null);
            const move = e => this.setIndex(axis, Math.max(0, Math.min(most, Math.round(+e.target.value) || 0)));
            const range = el("input", { type: "range", min: 0, max: most, value: this.index[axis], "aria-label": `${this.names[axis]}, slider`, oninput: move });
            const number = el("input", { type: "number", min: 0, max: most, value: this.index[axis], "aria-label": `${this.names[axis]}, index`, onchange: move });
            this.outputs.push({ axis, range, number, output });
            const c = this.node.coordinates && this.node.coordinates[axis];
            const place = c && c.values && c.values.length > 1 ? el("input", { size: 12, autocomplete: "off", "aria-label": `${this.names[axis]}, by coordinate`, placeholder: "coordinate", onchange: e => this.seek(axis, e.target.value) }) : null;
            box.append(el("div", { class: "tools", "data-axis": axis }, el("span", null, this.names[axis]), range, number, place, output));
        });
        this.tell();
    }
    /* Goes to the coordinate that is nearest to a number, or begins with a text. */
    seek(axis, text) {
        const { values } = this.node.coordinates[axis], wanted = parseFloat(text);
        let best = values.findIndex((_, i) => text !== "" && this.coordinate(axis, i).startsWith(text));
        if (best < 0 && Number.isFinite(wanted) && !this.readers[axis].time)
            values.forEach((v, i) => { if (best < 0 || Math.abs(this.readers[axis].number(v) - wanted) < Math.abs(this.readers[axis].number(values[best]) - wanted)) best = i; });
        if (best < 0) return say(`${this.names[axis]} has no coordinate ${text}`);
        this.setIndex(axis, best);
    }
    tell() {
        for (const o of this.outputs || []) {
            o.range.value = o.number.value = this.index[o.axis];
            o.output.textContent = this.coordinate(o.axis, this.index[o.axis]);
        }
    }
    setIndex(axis, i) {
        this.index[axis] = i;
        this.tell();
        this.changed();
    }
    chooseAxis(key, axis) {
        const other = key === "x" ? "y" : "x";
        if (this[other] === axis) this[other] = this[key];
        this[key] = axis;
        this.whole();
        this.makeAxes();
        this.changed();
        $(`select[name=${key}]`, this.root).focus();
    }
    bind() {
        const f = this.form.elements;
        this.form.addEventListener("submit", e => e.preventDefault());
        const redraw = () => this.changed(true);
        f.map.addEventListener("change", redraw);
        f.limits.addEventListener("change", redraw);
        for (const e of [f.low, f.high]) e.addEventListener("change", () => { f.limits.value = "typed"; redraw(); });
        f.raw.addEventListener("change", () => { this.raw = f.raw.checked; this.reader = readerOf(this.node, this.raw); redraw(); });
        $(".raw", this.root).hidden = !this.reader.coded;
        f.in.addEventListener("click", () => this.zoom(.5));
        f.out.addEventListener("click", () => this.zoom(2));
        f.whole.addEventListener("click", () => { this.whole(); this.changed(); });
        for (const e of [f.map, f.limits, f.low, f.high]) e.closest("label").hidden = this.texts || this.channel >= 0;
    }
    zoom(by) {
        for (const axis of [this.x, this.y].filter(a => a >= 0)) {
            const [from, to] = this.window[axis], length = this.shape[axis];
            const size = Math.max(1, Math.min(length, Math.round((to - from) * by)));
            const middle = this.moved && this.cursor ? this.cursor[axis] : Math.floor((from + to) / 2);
            const first = Math.max(0, Math.min(length - size, Math.round(middle - size / 2)));
            this.window[axis] = [first, first + size];
        }
        this.changed();
    }
    /* The slice in Python's syntax; `at`: of one element. */
    slice(at) {
        return "[" + this.shape.map((_, i) => (at ? at[i] : i === this.x || i === this.y ? this.window[i].join(":") : i === this.channel ? ":" : this.index[i])).join(",") + "]";
    }
    look(lists) {
        const f = this.form.elements;
        let [low, high] = limitsOf(lists, f.limits.value === "2" ? 2 : 0);
        if (f.limits.value === "typed") {
            const typed = [parseFloat(f.low.value), parseFloat(f.high.value)];
            low = Number.isFinite(typed[0]) ? typed[0] : low;
            high = Number.isFinite(typed[1]) ? typed[1] : high;
        } else {
            f.low.value = show(low);
            f.high.value = show(high);
        }
        if (f.limits.value !== "typed" && f.map.value === "diverging" && low < 0 && high > 0) {
            high = Math.max(-low, high);
            low = -high;
        }
        return { map: f.map.value, low, high };
    }
    /* Elements in rows of the chosen axes, as numbers. */
    picture(data, reader = this.reader) {
        const { axes, shape } = data.head, at = axis => axes.indexOf(axis);
        const strides = shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));
        const size = axis => (axis >= 0 ? shape[at(axis)] : 1), stride = axis => (axis >= 0 ? strides[at(axis)] : 0);
        const w = size(this.x), h = size(this.y), channels = this.channel >= 0 ? size(this.channel) : 0;
        const n = w * h * (channels || 1), values = new Float64Array(n), raw = data.raw instanceof Array ? [] : new data.raw.constructor(n);
        for (let y = 0, to = 0; y < h; y++)
            for (let x = 0; x < w; x++)
                for (let c = 0; c < (channels || 1); c++, to++) {
                    const v = data.raw[y * stride(this.y) + x * stride(this.x) + c * stride(this.channel)];
                    raw[to] = v;
                    values[to] = data.text ? NaN : channels || !reader ? Number(v) : reader.number(v);
                }
        return { w, h, values, raw, channels, head: data.head, parts: data.parts, steps: this.steps(data.head) };
    }
    steps(head) {
        return [this.x, this.y].map(axis => (axis >= 0 ? head.step[head.axes.indexOf(axis)] : 1));
    }
    ratio(head, axis) { /* an axis of a coarser level beside the one that is chosen from */
        return head.of ? head.of[axis] / this.shape[axis] : 1;
    }
    /* The element of the array that stands at a place of the picture. */
    element(picture, x, y) {
        const { head } = picture, out = [...this.index];
        for (const [axis, i] of [[this.x, x], [this.y, y]])
            if (axis >= 0) {
                const k = head.axes.indexOf(axis);
                out[axis] = Math.min(this.shape[axis] - 1, Math.floor((head.start[k] + i * head.step[k]) / this.ratio(head, axis)));
            }
        if (this.channel >= 0) out[this.channel] = 0;
        return out;
    }
    /* The place of the picture where an element of the array stands. */
    find(picture, index) {
        const { head } = picture;
        return [this.x, this.y].map(axis => {
            const k = head.axes.indexOf(axis);
            return axis < 0 ? 0 : Math.floor((index[axis] * this.ratio(head, axis) - head.start[k]) / head.step[k]);
        });
    }
    /* What a place of the picture is called: "[3, 5] lat 45". */
    place(index) {
        const parts = index.map((i, axis) => { const c = this.coordinate(axis, i); return c && axis !== this.channel ? `${this.names[axis]} ${c}` : ""; }).filter(Boolean);
        return `[${index.filter((_, i) => i !== this.channel).join(", ")}]` + (parts.length ? ` ${parts.join(", ")}` : "");
    }
    every(head) {
        const parts = head.every.map((n, k) => (n > 1 ? `every ${ordinal(n)} along ${this.names[head.axes[k]]}` : "")).filter(Boolean);
        const level = head.level > 0 ? [`level ${head.level} of the picture`] : [];
        return [...level, ...parts].join(", ") || "every element";
    }
}
const ordinal = n => n + (n % 100 > 10 && n % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][n % 10] || "th");

/* A canvas with a cursor that keys and the pointer move. */
class Stage {
    constructor(view, title, moved) {
        this.view = view;
        this.moved = moved;
        this.canvas = el("canvas", { tabindex: 0, role: "application", "aria-roledescription": "picture" });
        this.marks = vg("svg", { preserveAspectRatio: "none", "aria-hidden": "true" });
        this.caption = el("figcaption", null, title || "");
        this.frame = el("div", { class: "frame" }, this.canvas, this.marks);
        this.figure = el("figure", null, this.frame, this.caption);
        this.cx = this.cy = 0;
        this.canvas.addEventListener("keydown", e => this.key(e));
        this.canvas.addEventListener("pointermove", e => this.point(e, false));
        this.canvas.addEventListener("click", e => this.point(e, true));
        this.canvas.addEventListener("dblclick", () => view.zoom(.5));
    }
    draw(picture, look, label, size) {
        this.picture = picture;
        paint(this.canvas, picture, look, size);
        this.canvas.setAttribute("aria-label", label);
        this.marks.setAttribute("viewBox", `0 0 ${picture.w} ${picture.h}`);
        const at = this.view.moved && this.view.cursor ? this.view.find(picture, this.view.cursor) : [this.cx, this.cy];
        this.cx = Math.max(0, Math.min(at[0], picture.w - 1));
        this.cy = Math.max(0, Math.min(at[1], picture.h - 1));
        this.mark();
    }
    mark() {
        $$(".cursor", this.marks).forEach(e => e.remove());
        const box = name => vg("rect", { class: name, x: this.cx, y: this.cy, width: 1, height: 1 });
        this.marks.append(vg("g", { class: "cursor" }, box("cursor-box"), box("cursor-core")));
        this.view.cursor = this.view.element(this.picture, this.cx, this.cy);
    }
    point(e, keep) {
        if (!this.picture) return;
        const r = this.canvas.getBoundingClientRect(), { w, h } = this.picture;
        const x = Math.max(0, Math.min(w - 1, Math.floor((e.clientX - r.left) / r.width * w)));
        const y = Math.max(0, Math.min(h - 1, Math.floor((e.clientY - r.top) / r.height * h)));
        if (keep) { this.cx = x; this.cy = y; this.view.moved = true; this.mark(); }
        this.moved(x, y, keep);
    }
    key(e) {
        if (!this.picture || e.ctrlKey || e.altKey || e.metaKey) return;
        const { w, h } = this.picture, far = e.shiftKey ? 10 : 1;
        const step = { ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, -far], ArrowDown: [0, far], Home: [-w, 0], End: [w, 0], PageUp: [0, -h], PageDown: [0, h] }[e.key];
        if (e.key === "+" || e.key === "=") this.view.zoom(.5);
        else if (e.key === "-") this.view.zoom(2);
        else if (e.key === "0") { this.view.whole(); this.view.changed(); }
        else if (step) {
            this.cx = Math.max(0, Math.min(w - 1, this.cx + step[0]));
            this.cy = Math.max(0, Math.min(h - 1, this.cy + step[1]));
            this.view.moved = true;
            this.mark();
            this.moved(this.cx, this.cy, true);
        } else return;
        e.preventDefault();
    }
}

/* A line of an array's elements along one axis. */
function plot(view, picture, at) {
    const { values, w } = picture, [low, high] = limitsOf([values], 0);
    const y = v => (high - v) / (high - low);
    const runs = [[]];
    for (let i = 0; i < w; i++)
        if (Number.isFinite(values[i])) runs[runs.length - 1].push(`${i},${y(values[i])}`);
        else if (runs[runs.length - 1].length) runs.push([]);
    return vg("svg", { class: "plot", viewBox: `-0.5 -0.02 ${w} 1.04`, preserveAspectRatio: "none", "aria-hidden": "true" },
        runs.filter(r => r.length).map(r => vg("polyline", { points: r.length > 1 ? r.join(" ") : `${r[0]} ${r[0]}` })),
        vg("line", { x1: at, x2: at, y1: 0, y2: 1 }));
}
/* ---- an array ----------------------------------------------------------------------------------- */

const rowOf = (name, value) => el("tr", null, el("th", { scope: "row" }, name), el("td", null, value instanceof Node ? value : bdi(value)));

function factTable(caption, rows) {
    return el("table", null, el("caption", null, caption), el("tbody", null, rows.filter(Boolean).map(r => rowOf(...r))));
}

/* Elements as text: an element with fields gets a column for each if there is one axis. */
function textTable(view, picture) {
    const { w, h, raw } = picture, type = view.node.dtype;
    const cell = v => shorten(typeof v === "string" ? v : JSON.stringify(v), 200);
    const index = (x, y) => view.element(picture, x, y);
    if (view.y < 0) {
        let fields = null;
        try { fields = JSON.parse(type).configuration.fields.map(f => (Array.isArray(f) ? f[0] : f.name)); } catch { /* no fields */ }
        const cells = v => (fields ? fields.map((name, k) => cell(Array.isArray(v) ? v[k] : v === null ? v : v[name])) : [cell(v)]);
        return tableOf("Elements", [view.x >= 0 ? view.names[view.x] : "", ...(fields || ["Value"])],
            Array.from({ length: w }, (_, x) => [view.x >= 0 ? index(x, 0)[view.x] : "", ...cells(raw[x])]));
    }
    return tableOf("Elements", ["", ...Array.from({ length: w }, (_, x) => String(index(x, 0)[view.x]))],
        Array.from({ length: h }, (_, y) => [index(0, y)[view.y], ...Array.from({ length: w }, (_, x) => cell(raw[y * w + x]))]));
}

function around(view, picture, cx, cy) {
    const { w, h, raw, channels } = picture, x0 = Math.max(0, Math.min(cx - 3, w - 7)), y0 = Math.max(0, Math.min(cy - 6, h - 13));
    const xs = Array.from({ length: Math.min(7, w) }, (_, i) => x0 + i), ys = Array.from({ length: Math.min(13, h) }, (_, i) => y0 + i);
    const text = i => (channels ? Array.from(raw.slice(i * channels, (i + 1) * channels)).join(" ") : view.reader.text(raw[i]));
    const table = tableOf("Elements around the cursor", [view.y >= 0 ? view.names[view.y] : "", ...xs.map(x => String(view.element(picture, x, 0)[view.x]))],
        ys.map(y => [view.y >= 0 ? view.element(picture, 0, y)[view.y] : "", ...xs.map(x => text(y * w + x))]));
    const place = $$("tbody tr", table)[cy - y0];
    if (place) place.children[cx - x0 + 1].classList.add("cursor");
    return $("table", table);
}

function scaleBar(look, text) {
    const canvas = el("canvas", { "aria-hidden": "true" });
    paint(canvas, { w: 256, h: 1, values: Float64Array.from({ length: 256 }, (_, i) => look.low + (look.high - look.low) * (i + .5) / 256) }, look, 256);
    return [bdi(text(look.low)), " ", canvas, " ", bdi(text(look.high)), " · hatched: no number"];
}

function valueText(view, picture, i) {
    if (picture.channels) return Array.from(picture.raw.slice(i * picture.channels, (i + 1) * picture.channels)).join(", ");
    if (picture.parts) return `${show(picture.parts[2 * i])} + ${show(picture.parts[2 * i + 1])}i`;
    return view.reader.text(picture.raw[i]) + (view.reader.units ? " " + view.reader.units : "");
}

/* The slice that an answer was made of, in its own array. */
function sliceOf(head) {
    const range = k => `${head.start[k]}:${head.start[k] + (head.shape[k] - 1) * head.step[k] + 1}`;
    return "[" + head.at.map((n, i) => (head.axes.includes(i) ? range(head.axes.indexOf(i)) : n)).join(",") + "]";
}

/* Asks for parts of a picture, each within the server's limits, until it has `most` elements along each axis. */
async function inParts(view, rev, picture, most, wanted) {
    const { head } = picture, axes = [view.y, view.x], range = axis => view.window[axis], many = picture.channels || 1;
    const step = axes.map(a => Math.max(1, Math.ceil((range(a)[1] - range(a)[0]) / most)));
    const [h, w] = axes.map((a, k) => Math.ceil((range(a)[1] - range(a)[0]) / step[k]));
    const of = (list, other) => head.axes.map(a => (axes.includes(a) ? list[axes.indexOf(a)] : other));
    const fine = { w, h, channels: picture.channels, raw: new picture.raw.constructor(w * h * many), values: new Float64Array(w * h * many).fill(NaN),
        head: { ...head, by_budget: false, shape: of([h, w], many), every: of(step, 1), start: of(axes.map(a => range(a)[0]), 0), step: of(step, 1) }, steps: [step[1], step[0]] };
    const waiting = [[0, h, 0, w]];
    for (let asked = 1; waiting.length && wanted(); asked++) {
        const [y0, y1, x0, x1] = waiting.shift();
        const cut = [[y0, y1], [x0, x1]].map(([from, to], k) => `${range(axes[k])[0] + from * step[k]}:${Math.min(range(axes[k])[1], range(axes[k])[0] + to * step[k])}:${step[k]}`);
        const slice = "[" + view.shape.map((_, i) => (axes.includes(i) ? cut[axes.indexOf(i)] : i === view.channel ? ":" : view.index[i])).join(",") + "]";
        if (asked > 256) throw new Error("A finer picture takes too many parts.");
        say(`Reading part ${asked} …`);
        const part = await ask("slice", { rev, path: head.path, slice, max: 8192 });
        if (part.head.every.some(n => n > 1)) {
            if (y1 - y0 < 2 && x1 - x0 < 2) throw new Error("One element takes more than the server reads at once.");
            const ym = y1 - y0 > 1 ? (y0 + y1) >> 1 : y1, xm = x1 - x0 > 1 ? (x0 + x1) >> 1 : x1;
            waiting.push(...[[y0, ym, x0, xm], [y0, ym, xm, x1], [ym, y1, x0, xm], [ym, y1, xm, x1]].filter(([a, b, c, d]) => b > a && d > c));
            continue;
        }
        const p = view.picture(part);
        for (let y = 0; y < p.h; y++)
            for (const list of ["raw", "values"]) fine[list].set(p[list].subarray(y * p.w * many, (y + 1) * p.w * many), ((y0 + y) * w + x0) * many);
    }
    return fine;
}

/* Whether all of a picture is a few parts, which then come unasked. */
function isFew(view, picture) {
    const { chunk, item_size } = view.node, in_all = view.shape.reduce((n, _, i) => n * (i === view.x || i === view.y ? Math.ceil((view.window[i][1] - view.window[i][0]) / chunk[i]) : 1), 1);
    return picture.head.by_budget && !picture.head.of && view.y >= 0 && in_all <= 512 && in_all * chunk.reduce((a, b) => a * b, item_size) <= 2 ** 29;
}

class Viewer {
    constructor(mount, node, path, rev) {
        this.root = $("#t-viewer").content.firstElementChild.cloneNode(true);
        mount.replaceChildren(this.root);
        Object.assign(this, { node, path, rev, busy: false, again: false });
        this.view = new View(node, path, this.root, redraw => (redraw && this.data ? this.draw() : this.load()));
        this.stage = new Stage(this.view, "", (x, y, keep) => this.tell(x, y, keep));
        $("select[name=chunks]", this.root).addEventListener("change", () => this.drawChunks());
        $("button[name=blame]", this.root).addEventListener("click", () => this.blame());
        this.form = this.view.form.elements;
        this.form.finer.addEventListener("click", () => this.refine());
        $(".whole", this.root).addEventListener("toggle", e => e.target.open && this.wholeStats());
        $(".history", this.root).addEventListener("toggle", e => e.target.open && this.history());
    }
    get slice() { return this.view.shape.length ? this.view.slice() : ""; }
    /* One question at a time: what is asked for meanwhile is only the last. */
    async load() {
        if (this.busy) { this.again = true; return; }
        this.busy = true;
        try {
            this.data = await ask("slice", { rev: this.rev, path: this.path, slice: this.slice, max: this.view.texts ? 64 : this.view.y < 0 ? 4096 : 1024 });
            this.fine = null;
            if (!this.again) this.draw();
            if (!this.again && !this.data.text && isFew(this.view, this.picture)) this.refine();
        } catch (e) {
            $(".summary", this.root).textContent = e.message;
            $(".stage", this.root).replaceChildren();
        }
        this.busy = false;
        if (this.again) { this.again = false; await this.load(); }
    }
    draw() {
        const { view, root } = this, picture = this.picture = this.fine || view.picture(this.data);
        if (this.fine) for (let i = 0; i < picture.values.length && !picture.channels; i++) picture.values[i] = view.reader.number(picture.raw[i]);
        const text = v => (view.reader.time ? view.reader.time(v) : show(v));
        const sums = this.data.text || picture.channels ? null : sumsOf(picture.values, picture.raw, this.node);
        const what = `${picture.w}${view.y >= 0 ? " × " + picture.h : ""} elements of ${this.path} at ${this.slice || "its only place"}`;
        let summary = `${what}, ${view.every(picture.head)}.`;
        if (picture.head.by_budget) summary += " A picture of all would decode too many chunks: zoom in, or ask for a finer one.";
        if (sums) summary += ` From ${text(sums.low)} to ${text(sums.high)}, mean ${text(sums.mean)}; ${sums.nan} without a number, ${sums.fills} with the fill value.`;
        $(".summary", root).textContent = summary;
        root.dataset.slice = this.slice;
        this.form.finer.hidden = !picture.head.by_budget || Boolean(this.fine) || this.data.text;
        if (this.data.text) {
            $(".stage", root).replaceChildren(textTable(view, picture));
            for (const e of $$(".values, .legend, .numbers, .whole, .history", root)) e.hidden = true;
            this.view.cursor = view.element(picture, 0, 0);
            return;
        }
        const look = this.look = view.look([picture.values]);
        if (view.y < 0) this.drawLine(picture);
        else {
            if (!this.stage.figure.isConnected) $(".stage", root).replaceChildren(this.stage.figure);
            this.stage.draw(picture, look, summary);
        }
        $(".legend", root).replaceChildren(...(picture.channels || view.y < 0 ? [] : scaleBar(look, text)));
        $(".numbers", root).replaceChildren(...(sums ? [factTable("What is shown", [["Elements", sums.count], ["Least", text(sums.low)], ["Greatest", text(sums.high)],
            ["Mean", text(sums.mean)], ["Standard deviation", view.reader.time ? "–" : show(sums.std)], ["NaN or missing", sums.nan], ["Fill value", sums.fills]]),
            ...histogram(binsOf(picture.values, sums.low, sums.high), text)] : []));
        this.tell(this.stage.cx = Math.min(this.stage.cx, picture.w - 1), this.stage.cy = Math.min(this.stage.cy, picture.h - 1), true);
        this.drawChunks();
    }
    drawLine(picture) {
        const stage = $(".stage", this.root), { view } = this;
        const range = el("input", { type: "range", min: 0, max: Math.max(0, picture.w - 1), value: Math.min(this.stage.cx, picture.w - 1),
            "aria-label": view.x >= 0 ? `Cursor along ${view.names[view.x]}` : "Cursor", oninput: e => move(+e.target.value) });
        const holder = el("div", { class: "line" }), refresh = x => holder.replaceChildren(plot(view, picture, x));
        const move = x => { this.stage.cx = x; this.view.moved = true; this.view.cursor = view.element(picture, x, 0); refresh(x); this.tell(x, 0, true); };
        refresh(+range.value);
        this.view.cursor = view.element(picture, +range.value, 0);
        holder.addEventListener("pointermove", e => { const r = holder.getBoundingClientRect(); this.tell(Math.max(0, Math.min(picture.w - 1, Math.floor((e.clientX - r.left) / r.width * picture.w))), 0, false); });
        if (picture.w > 1) stage.replaceChildren(el("div", { class: "plotbox" }, holder, range));
        else stage.replaceChildren(el("p", null, bdi(valueText(view, picture, 0))));
    }
    tell(x, y, keep) {
        const { view, picture } = this, index = view.element(picture, x, y);
        $(".readout", this.root).textContent = `${view.place(index)} = ${valueText(view, picture, y * picture.w + x)}`;
        if (!keep) return;
        $(".blamed", this.root).textContent = "";
        const values = $(".values", this.root);
        const refill = () => $(".scroll", values).replaceChildren(around(view, picture, x, y));
        values.ontoggle = () => values.open && refill();
        if (values.open) refill();
    }
    async blame() {
        const out = $(".blamed", this.root), at = this.view.cursor || this.view.index;
        try {
            const { runs } = await ask("blame", { rev: this.rev, path: this.node.path, slice: this.view.slice(at) });
            out.replaceChildren(...runs.slice(0, 1).flatMap(r => [`${this.view.place(at)}: `, idLink(r.commit), r.or_before ? " or before" : "", ` by `, bdi(r.author), `, ${timeText(r.time)}`]));
            if (!runs.length) out.textContent = "it was never written";
        } catch (e) { out.textContent = e.message; }
    }
    /* Chunks as boxes over the picture, and as a table below. */
    async drawChunks() {
        const how = this.form.chunks.value, { view, root, picture } = this, marks = this.stage.marks;
        $$(".chunks", marks).forEach(e => e.remove());
        $(".chunktable", root)?.remove();
        if (!how || view.y < 0 || this.data.text) return;
        let c;
        try {
            c = await ask("chunks", { rev: this.rev, path: picture.head.path, slice: sliceOf(picture.head), commits: how === "last" ? 1 : "" });
        } catch (e) { say(e.message); return; }
        if (this.picture !== picture) return;
        $$(".chunks", marks).forEach(e => e.remove());
        const { head } = picture, group = vg("g", { class: "chunks" }, vg("defs", null, vg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse" },
            vg("path", { d: "M0 6L6 0", stroke: "#fff", "stroke-opacity": .6 }))));
        const span = c.axes.map((_, k) => c.count.slice(k + 1).reduce((a, b) => a * b, 1)), rows = [];
        c.there.forEach((there, i) => {
            const at = c.axes.map((axis, k) => c.first[k] + Math.floor(i / span[k]) % c.count[k]);
            const edge = axis => { const k = head.axes.indexOf(axis), j = c.axes.indexOf(axis); const [from, to] = c.starts[j].slice(at[j] - c.first[j]); return [(from - head.start[k]) / head.step[k], (to - from) / head.step[k]]; };
            const [x, w] = edge(view.x), [y, h] = edge(view.y);
            const ratio = c.bytes[i] ? c.decoded[i] / c.bytes[i] : 0;
            const box = vg("rect", { class: "chunk" + (there ? "" : " none"), x, y, width: w, height: h });
            if (how === "ratio" && ratio) { const k = 3 * shadeIndex(Math.log2(ratio), -1, 6); box.style.fill = `rgb(${MAPS.cividis.slice(k, k + 3).join(",")})`; box.style.fillOpacity = .55; }
            if (how === "last" && c.last[i] >= 0) { box.style.fill = `var(--l${c.last[i] % 6})`; box.style.fillOpacity = .5; }
            group.append(box);
            const commit = c.last && c.last[i] >= 0 ? c.commits[c.last[i]] : null;
            if (rows.length < 200) rows.push([at.join(", "), there ? "stored" : "not stored", c.bytes[i] === null ? "" : bytesText(c.bytes[i]), ratio ? ratio.toFixed(2) + " times" : "", ...(c.last ? [commit ? idLink(commit.commit, `${commit.commit.slice(0, 8)}, ${timeText(commit.time)}`) : ""] : [])]);
        });
        marks.prepend(group);
        const stored = c.there.reduce((a, b) => a + b, 0);
        $(".legend", root).after(el("details", { class: "chunktable" }, el("summary", null, `${stored} of ${c.there.length} chunks here are stored`),
            tableOf("Chunks", ["Chunk", "State", "Bytes", "Compression", ...(c.last ? ["Last commit"] : [])], rows)));
    }
    async refine() {
        const data = this.data;
        this.form.finer.hidden = true;
        try {
            const fine = await inParts(this.view, this.rev, this.view.picture(data), 1024, () => data === this.data);
            if (data !== this.data) return;
            this.fine = fine;
            this.draw();
            say("");
        } catch (e) { say(e.message); }
    }
    async wholeStats() {
        const out = $(".whole div", this.root), { view } = this;
        try {
            const s = await ask("stats", { rev: this.rev, path: this.node.path });
            const text = v => (v === null ? "–" : typeof v === "number" ? view.reader.text(v) : v);
            out.replaceChildren(factTable("All elements", [["Elements", s.count], ["Least", text(s.min)], ["Greatest", text(s.max)], ["Mean", typeof s.mean_text === "string" ? s.mean_text : text(s.mean)],
                ["Standard deviation", s.std === null ? "–" : show(s.std)], ["NaN", s.nan], ["Infinite", s.infinite], ["Fill value", s.fill]]),
                ...histogram(s.bins.map(b => ({ from: b.from, to: b.to, count: b.count })), text));
        } catch (e) { out.textContent = e.message; }
    }
    /* The slice that is shown, in the last versions that changed the array. */
    async history() {
        const out = $(".history div", this.root), { view } = this, slice = this.slice;
        let answer;
        try { answer = await ask("history", { rev: this.rev, path: this.node.path, n: 12 }); } catch (e) { out.textContent = e.message; return; }
        const strip = el("div", { class: "strip" }), rows = [], means = [], sizes = [];
        out.replaceChildren(strip);
        for (const c of answer.commits) {
            const figure = el("figure", null), title = shorten(c.message.split("\n")[0], 60);
            let mean = NaN, note = "";
            strip.append(figure);
            if (c.there)
                try {
                    const picture = view.picture(await ask("slice", { rev: c.id, path: c.path, slice, max: view.y < 0 ? 256 : 96 }));
                    const sums = sumsOf(picture.values, picture.raw, this.node);
                    mean = sums.mean;
                    if (view.y < 0) figure.append(plot(view, picture, 0));
                    else {
                        const canvas = el("canvas", { role: "img", "aria-label": `${slice} in ${c.id.slice(0, 8)}: from ${show(sums.low)} to ${show(sums.high)}` });
                        paint(canvas, picture, this.look || view.look([picture.values]), 128);
                        figure.append(canvas);
                    }
                } catch (e) { note = e.message; }
            else note = "removed here";
            figure.append(el("figcaption", null, idLink(c.id), " ", bdi(title), el("br"), timeText(c.time), note ? el("p", null, note) : null));
            means.push(mean);
            sizes.push(c.stored || 0);
            rows.push([idLink(c.id), timeText(c.time), title, show(mean), c.stored === undefined ? "" : bytesText(c.stored), c.shape ? c.shape.join(" × ") : ""]);
        }
        const spark = (title, list) => { const v = list.slice().reverse(); return v.filter(Number.isFinite).length > 1 ? [el("p", null, title), vg("svg", { class: "spark", viewBox: `0 -0.1 ${v.length - 1} 1.2`, preserveAspectRatio: "none", "aria-hidden": "true" },
            vg("polyline", { points: v.map((n, i) => [i, n]).filter(p => Number.isFinite(p[1])).map(([i, n]) => `${i},${1 - (n - Math.min(...v.filter(Number.isFinite))) / (Math.max(...v.filter(Number.isFinite)) - Math.min(...v.filter(Number.isFinite)) || 1)}`).join(" ") }))] : []; };
        out.append(...spark("Mean of the slice, oldest to newest", means), ...spark("Stored bytes, oldest to newest", sizes),
            tableOf("Versions", ["Commit", "Time", "Message", "Mean", "Stored", "Shape"], rows));
    }
}

/* Opens an array, or the finest level of a picture in several sizes. */
async function openNode(path, rev) {
    const node = await ask("node", { rev, path });
    if (node.kind === "array") return node;
    const level = await ask("node", { rev, path: node.levels[0] });
    return { ...level, levels: node.levels };
}

async function showViewer(mount) {
    const path = mount.dataset.path, rev = query.get("rev") || "";
    try {
        const node = await openNode(path, rev);
        if (node.shape.some(n => n === 0)) { mount.textContent = "The array has no elements."; return; }
        $("[aria-label='First elements']")?.remove();
        await new Viewer(mount, node, path, rev).load();
    } catch (e) { mount.replaceChildren(el("p", { class: "error" }, e.message)); }
}

async function showPreview(mount) {
    const path = mount.dataset.path, rev = query.get("rev") || "";
    try {
        const node = await openNode(path, rev);
        const root = $("#t-viewer").content.firstElementChild.cloneNode(true), view = new View(node, path, root, () => {});
        if (view.texts || node.shape.some(n => n === 0) || !node.shape.length) return;
        let picture = view.picture(await ask("slice", { rev, path, slice: view.slice(), max: 256 }));
        if (isFew(view, picture)) picture = await inParts(view, rev, picture, 256, () => mount.isConnected);
        say("");
        const look = view.look([picture.values]), sums = sumsOf(picture.values, picture.raw, node);
        const summary = `${picture.w}${view.y >= 0 ? " × " + picture.h : ""} elements at ${view.slice()}, ${view.every(picture.head)}` + (picture.channels ? "." : `: from ${show(sums.low)} to ${show(sums.high)}.`);
        const canvas = el("canvas", { role: "img", "aria-label": summary });
        if (view.y >= 0) paint(canvas, picture, look, 384);
        mount.replaceChildren(view.y >= 0 ? canvas : plot(view, picture, 0), el("p", null, summary));
    } catch (e) { mount.textContent = e.message; }
}

/* ---- two versions --------------------------------------------------------------------------------- */

const countText = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;

function changeFacts(change) {
    const e = change.elements, rows = [["Change", change.storage_only ? "storage only: no value differs" : change.what + (change.from ? ` from ${change.from}` : "")],
        ["Chunks", `${change.chunks_added} added, ${change.chunks_changed} changed, ${change.chunks_removed} removed`]];
    if (e && e.why) rows.push(["Elements", e.why]);
    else if (e) {
        rows.push(["Elements", `${e.changed} changed, ${e.added} added, ${e.removed} removed`]);
        if (e.max !== null && e.changed > 0) rows.push(["Differences as stored", `at most ${show(e.max)}` + (e.mean === null ? "" : `, mean ${show(e.mean)}, root mean square ${show(e.rms)}`)]);
    }
    return factTable("What differs", rows);
}

function metadataTable(change) {
    if (!change.metadata.length) return null;
    const text = v => (v === undefined ? "–" : typeof v === "string" ? v : JSON.stringify(v, null, 1));
    return tableOf("Metadata", ["Member", "Old", "New"], change.metadata.map(m => [m.pointer, m.old_bytes ? bytesText(m.old_bytes) : text(m.old), m.new_bytes ? bytesText(m.new_bytes) : text(m.new)]));
}

class Differ {
    constructor(mount, node, change, sides) {
        this.root = $("#t-viewer").content.firstElementChild.cloneNode(true);
        $$(".values, .whole, .history, .numbers, [name=blame], [name=chunks], [name=finer]", this.root).forEach(e => (e.closest("label") || e).remove());
        mount.append(this.root);
        Object.assign(this, { node, change, sides, mode: "beside", busy: false, again: false });
        this.view = new View(node, node.path, this.root, redraw => (redraw && this.pictures ? this.draw() : this.load()));
        const choice = el("label", null, "Show ", el("select", { name: "mode", onchange: e => { this.mode = e.target.value; this.draw(); } },
            [["beside", "side by side"], ["wipe", "wipe"], ["blink", "blink"]].map(([value, text]) => el("option", { value }, text))));
        $(".looks", this.root).append(choice);
        const told = (x, y) => this.tell(x, y);
        this.stages = ["Old", "New", "Difference"].map(title => new Stage(this.view, title, told));
        this.boxes();
    }
    boxes() {
        const e = this.change.elements;
        if (!e || !e.boxes || !e.boxes.length) return;
        const text = b => "[" + b.first.map((n, i) => (n === b.last[i] ? n : `${n}:${b.last[i] + 1}`)).join(", ") + "]";
        $(".looks", this.root).after(el("fieldset", { class: "boxed" }, el("legend", null, `Changed boxes, the largest first (${e.nboxes})`),
            e.boxes.slice(0, 24).map(b => el("button", { type: "button", onclick: () => this.go(b) }, `${text(b)} · ${countText(b.size, "element")}`))));
        this.go(e.boxes[0], true);
    }
    /* Shows a box with some elements around it. */
    go(box, quiet) {
        const { view } = this;
        view.shape.forEach((length, i) => {
            const margin = Math.max(2, box.last[i] - box.first[i] + 1);
            view.index[i] = Math.min(length - 1, box.first[i]);
            view.window[i] = [Math.max(0, Math.min(length - 1, box.first[i] - margin)), Math.min(length, box.last[i] + 1 + margin)];
        });
        view.tell();
        if (!quiet) this.load();
    }
    async load() {
        if (this.busy) { this.again = true; return; }
        this.busy = true;
        const { sides, view, change } = this, slice = view.shape.length ? view.slice() : "", max = view.texts ? 32 : view.y < 0 ? 2048 : 512;
        const get = async over => { try { return view.picture(await ask("slice", { slice, max, ...over })); } catch (e) { return { error: e.message }; } };
        const old = { rev: sides.a, path: change.from || change.path }, now = { rev: sides.b, path: change.path };
        const pictures = await Promise.all([change.what === "added" ? { error: "not in this version" } : get(old), change.what === "removed" ? { error: "not in this version" } : get(now),
            change.what === "added" || change.what === "removed" || view.texts ? { error: "" } : get({ ...now, minus: sides.a, minuspath: old.path })]);
        this.busy = false;
        if (this.again) { this.again = false; return this.load(); }
        this.pictures = pictures;
        this.draw();
    }
    draw() {
        const { view, root } = this, stage = $(".stage", root), [old, now, difference] = this.pictures;
        clearInterval(this.timer);
        const good = [old, now].filter(p => !p.error);
        for (const p of good) if (!p.channels && !view.texts) p.raw.forEach((v, i) => { p.values[i] = view.reader.number(v); });
        const differs = difference.error === undefined ? difference : null;
        const factor = (this.node.document.attributes || {}).scale_factor;
        if (differs) differs.raw.forEach((v, i) => { differs.values[i] = Number(v) * (!view.raw && typeof factor === "number" ? factor : 1); });
        const look = view.look(good.map(p => p.values)), most = differs ? Math.max(...limitsOf([differs.values], 0).map(Math.abs)) || 1 : 1;
        const looks = [look, look, { map: "diverging", low: -most, high: most }];
        const changed = differs ? differs.values.reduce((n, v) => n + (v !== 0), 0) : 0;
        const first = good[0] || old;
        const names = ["Old", "New", "Difference, new − old"], ids = [this.sides.a, this.sides.b, ""];
        let summary = first.error ? first.error : `${first.w}${view.y >= 0 ? " × " + first.h : ""} elements at ${view.shape.length ? view.slice() : "its only place"}, ${view.every(first.head)}.`;
        if (differs) summary += ` ${countText(changed, "element")} of them differ${changed === 1 ? "s" : ""}${changed ? `, by at most ${show(most)}` : ""}.`;
        else if (difference.error) summary += ` ${difference.error}.`;
        $(".summary", root).textContent = summary;
        root.dataset.slice = view.slice();
        const figures = this.pictures.map((p, i) => {
            if (p.error !== undefined) return p.error ? el("figure", null, el("figcaption", null, `${names[i]} ${ids[i].slice(0, 8)}`), el("p", null, p.error)) : null;
            if (view.texts) return el("figure", null, el("figcaption", null, names[i]), textTable(view, p));
            if (view.y < 0) return el("figure", { class: "plotbox" }, plot(view, p, 0), el("figcaption", null, `${names[i]} ${ids[i].slice(0, 8)}: from ${show(limitsOf([p.values], 0)[0])} to ${show(limitsOf([p.values], 0)[1])}`));
            const s = this.stages[i];
            s.draw(p, looks[i], `${names[i]}: ${summary}`, 320);
            s.caption.replaceChildren(`${names[i]} `, ids[i] ? bdi(ids[i].slice(0, 12)) : "");
            return s.figure;
        }).filter(Boolean);
        const two = good.length === 2 && view.y >= 0 && !view.texts;
        stage.replaceChildren(...(two && this.mode === "wipe" ? this.wipe(looks) : two && this.mode === "blink" ? this.blink(looks) : figures));
        $(".legend", root).replaceChildren(...(view.texts || view.y < 0 || first.channels ? [] : [el("p", null, "Old and new: ", ...scaleBar(look, show)), ...(differs ? [el("p", null, "Difference: ", ...scaleBar(looks[2], show))] : [])]));
    }
    pair(looks) {
        return [0, 1].map(i => {
            const canvas = el("canvas", { role: "img", "aria-label": ["Old", "New"][i] });
            paint(canvas, this.pictures[i], looks[i]);
            return canvas;
        });
    }
    wipe(looks) {
        const [old, now] = this.pair(looks);
        const cut = n => { now.style.clipPath = `inset(0 0 0 ${n}%)`; };
        cut(50);
        return [el("div", null, el("div", { class: "wipe" }, old, now), el("p", null, el("label", null, "Old to new ", el("input", { type: "range", name: "wipe", min: 0, max: 100, value: 50, oninput: e => cut(+e.target.value) }))))];
    }
    blink(looks) {
        const [old, now] = this.pair(looks), name = el("span", null, "old");
        const swap = () => { now.hidden = !now.hidden; name.textContent = now.hidden ? "old" : "new"; };
        now.hidden = true;
        const stop = () => { clearInterval(this.timer); this.timer = 0; };
        const button = el("button", { type: "button", "aria-pressed": "false", onclick: () => {
            if (this.timer) stop(); else { swap(); if (!calm()) this.timer = setInterval(() => (button.isConnected ? swap() : stop()), 800); }
            button.setAttribute("aria-pressed", String(Boolean(this.timer)));
        } }, calm() ? "Swap" : "Blink");
        return [el("div", null, el("div", { class: "wipe" }, old, now), el("p", null, button, " shown: ", name))];
    }
    tell(x, y) {
        const { view } = this, base = this.pictures.find(p => !p.error);
        const index = view.element(base, x, y), at = p => (p.error !== undefined ? null : p.channels ? valueText(view, p, y * p.w + x) : show(p.values[y * p.w + x]));
        const [a, b, d] = this.pictures.map(at);
        $(".readout", this.root).textContent = `${view.place(index)}: old ${a ?? "none"}, new ${b ?? "none"}${d === null ? "" : `, difference ${d}`}`;
        for (const s of this.stages) if (s.picture) { s.cx = x; s.cy = y; s.mark(); }
    }
}

async function showDiffer(mount) {
    const path = mount.dataset.path, over = { a: query.get("a") || "", b: query.get("b") || "", path };
    let answer;
    mount.replaceChildren(el("h3", null, bdi(path)));
    try {
        try { answer = await ask("diff", { ...over, elements: 1 }); } catch (e) { answer = await ask("diff", over); answer.note = e.message; }
        const change = answer.changes.find(c => c.path === path);
        if (!change) { mount.append(el("p", null, "It does not differ.")); return; }
        mount.append(...[changeFacts(change), answer.note ? el("p", { class: "note" }, `Elements were not compared: ${answer.note}.`) : null, metadataTable(change)].filter(Boolean));
        if (change.kind !== "array" || change.storage_only) return;
        const sides = { a: answer.a || "", b: over.b === UNCOMMITTED ? UNCOMMITTED : answer.b };
        const node = await ask("node", change.what === "removed" ? { rev: sides.a, path } : { rev: sides.b, path });
        if (node.shape.some(n => n === 0)) return;
        await new Differ(mount, node, change, sides).load();
    } catch (e) { mount.append(el("p", { class: "error" }, e.message)); }
}

/* ---- the rest of the page -------------------------------------------------------------------------------- */

async function showSound(place) {
    const check = async () => {
        place.textContent = "looking …";
        try {
            const s = await ask("sound", {});
            place.replaceChildren(s.nfaults ? el("strong", null, `${countText(s.nfaults, "fault")}: ${s.faults[0].message}`) :
                s.complete ? `yes: ${s.checked} objects have the bytes that were stored` : `no fault in the ${s.checked} objects that were looked at`);
        } catch (e) { place.textContent = e.message; }
    };
    place.replaceChildren(el("button", { type: "button", onclick: check }, "Look"));
    if (+place.dataset.bytes < 64e6) await check();
}

async function showCounts(place) {
    place.textContent = "Counting …";
    try {
        const { counts } = await ask("summary", { counts: 1 }), n = x => x.toLocaleString("en");
        $("#totals").append(rowOf("Commits", n(counts.commits)), rowOf("Chunks", `${n(counts.chunks)} stored, used ${n(counts.chunk_refs)} times`),
            rowOf("Stored", `${bytesText(counts.stored_bytes)} for ${bytesText(counts.logical_bytes)} decoded`), rowOf("File", bytesText(counts.file_bytes)));
        place.remove();
    } catch (e) { place.textContent = e.message; }
}

function showOpen(place) {
    const { file, commit, path } = place.dataset, part = text => text.split("/").map(encodeURIComponent).join("/");
    const url = new URL(`${encodeURIComponent(commit || "main")}/${part(file)}.zarr${path === "/" ? "" : part(path)}`, location.origin + location.pathname).href;
    $$(".url").forEach(e => { e.textContent = url; });
    $("#neuroglancer").href = "https://neuroglancer-demo.appspot.com/#!" + encodeURIComponent(JSON.stringify({ layers: [{ type: "image", name: path, source: "zarr3://" + url }] }));
    $("#vizarr").href = "https://hms-dbmi.github.io/vizarr/?source=" + encodeURIComponent(url);
}

function enhanceMain() {
    const viewers = [["#viewer", showViewer], ["#preview", showPreview], ["#differ", showDiffer], ["#sound", showSound], ["#counts", showCounts], ["#open", showOpen]];
    return Promise.all(viewers.map(([selector, show_]) => $(selector) && show_($(selector)))).then(() => { document.body.dataset.ready = String(+(document.body.dataset.ready || 0) + 1); });
}

/* The same version's other views come without a new page. */
async function visit(href, keep) {
    const next = new URLSearchParams(href);
    if ((next.get("rev") || "") !== (query.get("rev") || "") || next.get("from") || next.get("filter")) { location.assign(href); return; }
    try {
        const reply = await fetch(`${location.pathname}${href}&part=main`);
        if (!reply.ok) throw new Error(`the server answered ${reply.status}`);
        const page = new DOMParser().parseFromString(await reply.text(), "text/html");
        for (const id of ["where", "tabs", "main"]) $("#" + id).replaceChildren(...$("#" + id, page).childNodes);
    } catch { location.assign(href); return; }
    if (!keep) history.pushState(null, "", href);
    query = next;
    $$(".tree a").forEach(a => {
        if (new URLSearchParams(a.search).get("path") === query.get("path")) a.setAttribute("aria-current", "page");
        else a.removeAttribute("aria-current");
    });
    $("#main").focus();
    if (!keep) scrollTo(0, 0);
    await enhanceMain();
}

let chosen = null; /* the commit that was chosen first */
function choose(row) {
    const button = $(".pick", row);
    if (chosen === row) { chosen = null; button.setAttribute("aria-pressed", "false"); say(""); return; }
    button.setAttribute("aria-pressed", "true");
    if (!chosen) { chosen = row; say(`${row.dataset.id.slice(0, 8)} is chosen: choose another commit to compare`); return; }
    const rows = $$("#rows li"), [old, now] = rows.indexOf(chosen) > rows.indexOf(row) ? [chosen, row] : [row, chosen];
    $$(".pick[aria-pressed=true]").forEach(b => b.setAttribute("aria-pressed", "false"));
    chosen = null;
    say("");
    visit(hrefOf({ view: "diff", rev: query.get("rev"), a: old.dataset.id, b: now.dataset.id }));
}

async function fillTouched(rows) {
    for (let i = 0; i < rows.length; i += 25) {
        const part = rows.slice(i, i + 25);
        let answer;
        try { answer = await ask("touched", { ids: part.map(r => r.dataset.id).join(".") }); } catch { return; }
        for (const row of part) {
            const t = answer.touched[row.dataset.id];
            if (!t) continue;
            const names = t.paths.slice(0, 3), more = t.n - names.length;
            $(".touched", row).replaceChildren(" · ", ...names.flatMap((n, k) => [k ? ", " : "", bdi(shorten(n, 60))]), more > 0 ? ` and ${more} more` : t.n ? "" : "nothing changed",
                t.chunks ? ` · ${countText(t.chunks, "chunk")}, about ${bytesText(t.bytes)} added` : "");
        }
    }
}

function enhanceRows(rows) {
    for (const row of rows) {
        const old = $("a.pick", row);
        if (old) old.replaceWith(el("button", { type: "button", class: "pick", "aria-pressed": "false", "aria-label": `Compare ${row.dataset.id.slice(0, 8)}`, onclick: () => choose(row) }, "Compare"));
    }
    fillTouched(rows);
}

function enhanceTimeline() {
    const box = $("#rows");
    enhanceRows($$("li", box));
    box.addEventListener("keydown", e => {
        const row = e.target.closest("li");
        if (!row || e.ctrlKey || e.altKey || e.metaKey || !["j", "k", "c"].includes(e.key)) return;
        e.preventDefault();
        if (e.key === "c") { choose(row); return; }
        const next = e.key === "j" ? row.nextElementSibling : row.previousElementSibling;
        if (next) $(".msg", next).focus();
        else if (e.key === "j") $(".older")?.focus();
    });
    box.addEventListener("click", async e => {
        const older = e.target.closest(".older");
        if (!older || e.ctrlKey || e.metaKey) return;
        e.preventDefault();
        const page = await fragment(new URLSearchParams(older.search));
        const rows = $$("li", page);
        older.closest("p").remove();
        $(".timeline", box).append(...rows);
        const next = $(".older", page);
        if (next) box.append(next.closest("p"));
        enhanceRows(rows);
        if (rows.length) $(".msg", rows[0]).focus();
    });
    $("#timeline form").addEventListener("submit", async e => {
        e.preventDefault();
        const page = await fragment(paramsOf({ filter: $("#filter").value }));
        box.replaceChildren(...page.body.childNodes);
        say(`${countText($$("li", box).length, "commit")} found`);
        enhanceRows($$("li", box));
    });
}
async function fragment(over) {
    over.set("part", "timeline");
    return new DOMParser().parseFromString(await (await fetch(`${location.pathname}?${over}`)).text(), "text/html");
}

function enhanceTree() {
    const list = $(".tree"), items = $$("li", list);
    if (!list) return;
    items.forEach((li, i) => { li.dataset.place = i; });
    $("#tree-filter").addEventListener("input", e => {
        const text = e.target.value.toLowerCase();
        for (const li of items) li.classList.toggle("away", !$$("a", li).some(a => a.textContent.toLowerCase().includes(text)) && !(li.parentElement.closest("li") && $("a", li.parentElement.closest("li")).textContent.toLowerCase().includes(text)));
    });
    $("#tree-order").addEventListener("change", e => {
        const key = e.target.value, most = li => Math.max(...$$("a", li).map(a => +a.dataset[key] || 0));
        for (const ul of [list, ...$$("ul", list)])
            ul.append(...[...ul.children].sort((a, b) => (key ? most(b) - most(a) : 0) || a.dataset.place - b.dataset.place));
    });
}

document.documentElement.classList.add("script");
document.addEventListener("click", e => {
    const link = e.target.closest("a[href^='?']");
    if (!link || e.defaultPrevented || e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey || link.matches(".older")) return;
    e.preventDefault();
    visit(link.getAttribute("href"));
});
document.addEventListener("submit", e => {
    if (!e.target.matches("form.pair")) return;
    e.preventDefault();
    visit("?" + new URLSearchParams([...new FormData(e.target)].filter(([, v]) => v !== "")));
});
addEventListener("popstate", () => visit(location.search || "?view=overview", true));
enhanceTree();
enhanceTimeline();
enhanceMain();
})();
