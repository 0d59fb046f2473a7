/* view.js - choosing a slice: axes, places, colours; a picture with a cursor; a line. */

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
        this.readers = node.shape.map(
            (_, i) => node.coordinates && node.coordinates[i] && readerOf(node.coordinates[i], false),
        );
        this.raw = false;
        this.reader = readerOf(node, false);
        if (n) this.makeAxes();
        else $(".axes", root).hidden = true;
        this.bind();
    }
    isText() {
        const type = this.node.dtype;
        return (
            !/^(bool|u?int(8|16|32|64|[24])|float|bfloat16|complex)/.test(type) &&
            !type.includes("datetime64") &&
            !type.includes("timedelta64")
        );
    }
    /* Red, green and blue: the last axis, or that of OME's channels, of 3 or 4 bytes. */
    findChannel() {
        const { shape, dims, dtype } = this.node,
            n = shape.length;
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
        return typeof v === "string"
            ? v
            : this.readers[axis].text(v) + (this.readers[axis].units ? " " + this.readers[axis].units : "");
    }
    makeAxes() {
        const box = $(".axes", this.root);
        $$("label, div", box).forEach(e => e.remove());
        const choice = (title, key) =>
            el(
                "label",
                null,
                title + " ",
                el(
                    "select",
                    { name: key, onchange: e => this.chooseAxis(key, +e.target.value) },
                    this.shape.map((length, i) =>
                        el(
                            "option",
                            { value: i, selected: this[key] === i, disabled: i === this.channel },
                            `${this.names[i]} (${length})`,
                        ),
                    ),
                ),
            );
        if (this.y >= 0) box.append(choice("Down", "y"));
        box.append(choice("Across", "x"));
        this.outputs = [];
        this.shape.forEach((length, axis) => {
            if (axis === this.x || axis === this.y || axis === this.channel) return;
            const most = Math.max(0, length - 1),
                output = el("output", null);
            const move = e => this.setIndex(axis, Math.max(0, Math.min(most, Math.round(+e.target.value) || 0)));
            const range = el("input", {
                type: "range",
                min: 0,
                max: most,
                value: this.index[axis],
                "aria-label": `${this.names[axis]}, slider`,
                oninput: move,
            });
            const number = el("input", {
                type: "number",
                min: 0,
                max: most,
                value: this.index[axis],
                "aria-label": `${this.names[axis]}, index`,
                onchange: move,
            });
            this.outputs.push({ axis, range, number, output });
            const c = this.node.coordinates && this.node.coordinates[axis];
            const place =
                c && c.values && c.values.length > 1
                    ? el("input", {
                          size: 12,
                          autocomplete: "off",
                          "aria-label": `${this.names[axis]}, by coordinate`,
                          placeholder: "coordinate",
                          onchange: e => this.seek(axis, e.target.value),
                      })
                    : null;
            box.append(
                el(
                    "div",
                    { class: "tools", "data-axis": axis },
                    el("span", null, this.names[axis]),
                    range,
                    number,
                    place,
                    output,
                ),
            );
        });
        this.tell();
    }
    /* Goes to the coordinate that is nearest to a number, or begins with a text. */
    seek(axis, text) {
        const { values } = this.node.coordinates[axis],
            wanted = parseFloat(text);
        let best = values.findIndex((_, i) => text !== "" && this.coordinate(axis, i).startsWith(text));
        if (best < 0 && Number.isFinite(wanted) && !this.readers[axis].time)
            values.forEach((v, i) => {
                if (
                    best < 0 ||
                    Math.abs(this.readers[axis].number(v) - wanted) <
                        Math.abs(this.readers[axis].number(values[best]) - wanted)
                )
                    best = i;
            });
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
        for (const e of [f.low, f.high])
            e.addEventListener("change", () => {
                f.limits.value = "typed";
                redraw();
            });
        f.raw.addEventListener("change", () => {
            this.raw = f.raw.checked;
            this.reader = readerOf(this.node, this.raw);
            redraw();
        });
        $(".raw", this.root).hidden = !this.reader.coded;
        f.in.addEventListener("click", () => this.zoom(0.5));
        f.out.addEventListener("click", () => this.zoom(2));
        f.whole.addEventListener("click", () => {
            this.whole();
            this.changed();
        });
        f.earlier.addEventListener("click", () => this.shift(-1));
        f.later.addEventListener("click", () => this.shift(1));
        f.earlier.hidden = f.later.hidden = !this.texts;
        for (const e of [f.map, f.limits, f.low, f.high]) e.closest("label").hidden = this.texts || this.channel >= 0;
    }
    /* Shows the rows of a table before or behind those that it has. */
    shift(by) {
        const axis = this.y >= 0 ? this.y : this.x;
        if (axis < 0) return;
        const [from, to] = this.window[axis],
            size = to - from;
        const first = Math.max(0, Math.min(this.shape[axis] - size, from + by * size));
        this.window[axis] = [first, first + size];
        this.changed();
    }
    zoom(by) {
        for (const axis of [this.x, this.y].filter(a => a >= 0)) {
            const [from, to] = this.window[axis],
                length = this.shape[axis];
            const size = Math.max(1, Math.min(length, Math.round((to - from) * by)));
            const middle = this.moved && this.cursor ? this.cursor[axis] : Math.floor((from + to) / 2);
            const first = Math.max(0, Math.min(length - size, Math.round(middle - size / 2)));
            this.window[axis] = [first, first + size];
        }
        this.changed();
    }
    /* The slice in Python's syntax; `at`: of one element. */
    slice(at) {
        return (
            "[" +
            this.shape
                .map((_, i) =>
                    at
                        ? at[i]
                        : i === this.x || i === this.y
                          ? this.window[i].join(":")
                          : i === this.channel
                            ? ":"
                            : this.index[i],
                )
                .join(",") +
            "]"
        );
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
        const { axes, shape } = data.head,
            at = axis => axes.indexOf(axis);
        const strides = shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));
        const size = axis => (axis >= 0 ? shape[at(axis)] : 1),
            stride = axis => (axis >= 0 ? strides[at(axis)] : 0);
        const w = size(this.x),
            h = size(this.y),
            channels = this.channel >= 0 ? size(this.channel) : 0;
        const n = w * h * (channels || 1),
            values = new Float64Array(n),
            raw = data.raw instanceof Array ? [] : new data.raw.constructor(n);
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
    ratio(head, axis) {
        /* an axis of a coarser level beside the one that is chosen from */
        return head.of ? head.of[axis] / this.shape[axis] : 1;
    }
    /* The element of the array that stands at a place of the picture. */
    element(picture, x, y) {
        const { head } = picture,
            out = [...this.index];
        for (const [axis, i] of [
            [this.x, x],
            [this.y, y],
        ])
            if (axis >= 0) {
                const k = head.axes.indexOf(axis);
                out[axis] = Math.min(
                    this.shape[axis] - 1,
                    Math.floor((head.start[k] + i * head.step[k]) / this.ratio(head, axis)),
                );
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
        const parts = index
            .map((i, axis) => {
                const c = this.coordinate(axis, i);
                return c && axis !== this.channel ? `${this.names[axis]} ${c}` : "";
            })
            .filter(Boolean);
        return (
            `[${index.filter((_, i) => i !== this.channel).join(", ")}]` + (parts.length ? ` ${parts.join(", ")}` : "")
        );
    }
    every(head) {
        const parts = head.every
            .map((n, k) => (n > 1 ? `every ${ordinal(n)} along ${this.names[head.axes[k]]}` : ""))
            .filter(Boolean);
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
        this.canvas.addEventListener("dblclick", () => view.zoom(0.5));
    }
    draw(picture, look, label, size = this.room()) {
        this.picture = picture;
        paint(this.canvas, picture, look, size);
        this.canvas.setAttribute("aria-label", label);
        this.marks.setAttribute("viewBox", `0 0 ${picture.w} ${picture.h}`);
        const at = this.view.moved && this.view.cursor ? this.view.find(picture, this.view.cursor) : [this.cx, this.cy];
        this.cx = Math.max(0, Math.min(at[0], picture.w - 1));
        this.cy = Math.max(0, Math.min(at[1], picture.h - 1));
        this.mark();
    }
    /* Returns the pixels that a picture may be high and wide. */
    room() {
        const width = this.figure.parentElement ? this.figure.parentElement.clientWidth : 640;
        return Math.max(320, Math.min(1024, width, innerHeight * 0.85));
    }
    mark() {
        $$(".cursor", this.marks).forEach(e => e.remove());
        const box = name => vg("rect", { class: name, x: this.cx, y: this.cy, width: 1, height: 1 });
        this.marks.append(vg("g", { class: "cursor" }, box("cursor-box"), box("cursor-core")));
        this.view.cursor = this.view.element(this.picture, this.cx, this.cy);
    }
    point(e, keep) {
        if (!this.picture) return;
        const r = this.canvas.getBoundingClientRect(),
            { w, h } = this.picture;
        const x = Math.max(0, Math.min(w - 1, Math.floor(((e.clientX - r.left) / r.width) * w)));
        const y = Math.max(0, Math.min(h - 1, Math.floor(((e.clientY - r.top) / r.height) * h)));
        if (keep) {
            this.cx = x;
            this.cy = y;
            this.view.moved = true;
            this.mark();
        }
        this.moved(x, y, keep);
    }
    key(e) {
        if (!this.picture || e.ctrlKey || e.altKey || e.metaKey) return;
        const { w, h } = this.picture,
            far = e.shiftKey ? 10 : 1;
        const step = {
            ArrowLeft: [-far, 0],
            ArrowRight: [far, 0],
            ArrowUp: [0, -far],
            ArrowDown: [0, far],
            Home: [-w, 0],
            End: [w, 0],
            PageUp: [0, -h],
            PageDown: [0, h],
        }[e.key];
        if (e.key === "+" || e.key === "=") this.view.zoom(0.5);
        else if (e.key === "-") this.view.zoom(2);
        else if (e.key === "0") {
            this.view.whole();
            this.view.changed();
        } else if (step) {
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
    const { values, w } = picture,
        [low, high] = limitsOf([values], 0);
    const y = v => (high - v) / (high - low);
    const runs = [[]];
    for (let i = 0; i < w; i++)
        if (Number.isFinite(values[i])) runs[runs.length - 1].push(`${i},${y(values[i])}`);
        else if (runs[runs.length - 1].length) runs.push([]);
    return vg(
        "svg",
        { class: "plot", viewBox: `-0.5 -0.02 ${w} 1.04`, preserveAspectRatio: "none", "aria-hidden": "true" },
        runs.filter(r => r.length).map(r => vg("polyline", { points: r.length > 1 ? r.join(" ") : `${r[0]} ${r[0]}` })),
        vg("line", { x1: at, x2: at, y1: 0, y2: 1 }),
    );
}
