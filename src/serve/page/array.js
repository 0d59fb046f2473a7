/* array.js - an array, looked at: its picture, numbers, chunks and history. */

const rowOf = (name, value) =>
    el("tr", null, el("th", { scope: "row" }, name), el("td", null, value instanceof Node ? value : bdi(value)));

function factTable(caption, rows) {
    return el(
        "table",
        null,
        el("caption", null, caption),
        el(
            "tbody",
            null,
            rows.filter(Boolean).map(r => rowOf(...r)),
        ),
    );
}

/* Elements as text: an element with fields gets a column for each if there is one axis. */
function textTable(view, picture) {
    const { w, h, raw } = picture,
        type = view.node.dtype;
    const cell = v => shorten(typeof v === "string" ? v : JSON.stringify(v), 200);
    const index = (x, y) => view.element(picture, x, y);
    if (view.y < 0) {
        let fields = null;
        try {
            fields = JSON.parse(type).configuration.fields.map(f => (Array.isArray(f) ? f[0] : f.name));
        } catch {
            /* no fields */
        }
        const cells = v =>
            fields ? fields.map((name, k) => cell(Array.isArray(v) ? v[k] : v === null ? v : v[name])) : [cell(v)];
        return tableOf(
            "Elements",
            [view.x >= 0 ? view.names[view.x] : "", ...(fields || ["Value"])],
            Array.from({ length: w }, (_, x) => [view.x >= 0 ? index(x, 0)[view.x] : "", ...cells(raw[x])]),
        );
    }
    return tableOf(
        "Elements",
        ["", ...Array.from({ length: w }, (_, x) => String(index(x, 0)[view.x]))],
        Array.from({ length: h }, (_, y) => [
            index(0, y)[view.y],
            ...Array.from({ length: w }, (_, x) => cell(raw[y * w + x])),
        ]),
    );
}

function around(view, picture, cx, cy) {
    const { w, h, raw, channels } = picture,
        x0 = Math.max(0, Math.min(cx - 3, w - 7)),
        y0 = Math.max(0, Math.min(cy - 6, h - 13));
    const xs = Array.from({ length: Math.min(7, w) }, (_, i) => x0 + i),
        ys = Array.from({ length: Math.min(13, h) }, (_, i) => y0 + i);
    const text = i =>
        channels ? Array.from(raw.slice(i * channels, (i + 1) * channels)).join(" ") : view.reader.text(raw[i]);
    const table = tableOf(
        "Elements around the cursor",
        [view.y >= 0 ? view.names[view.y] : "", ...xs.map(x => String(view.element(picture, x, 0)[view.x]))],
        ys.map(y => [view.y >= 0 ? view.element(picture, 0, y)[view.y] : "", ...xs.map(x => text(y * w + x))]),
    );
    const place = $$("tbody tr", table)[cy - y0];
    if (place) place.children[cx - x0 + 1].classList.add("cursor");
    return $("table", table);
}

function scaleBar(look, text) {
    const canvas = el("canvas", { "aria-hidden": "true" });
    paint(
        canvas,
        {
            w: 256,
            h: 1,
            values: Float64Array.from({ length: 256 }, (_, i) => look.low + ((look.high - look.low) * (i + 0.5)) / 256),
        },
        look,
        256,
    );
    return [bdi(text(look.low)), " ", canvas, " ", bdi(text(look.high)), " · hatched: no number"];
}

function valueText(view, picture, i) {
    if (picture.channels)
        return Array.from(picture.raw.slice(i * picture.channels, (i + 1) * picture.channels)).join(", ");
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
    const { head } = picture,
        axes = [view.y, view.x],
        range = axis => view.window[axis],
        many = picture.channels || 1;
    const step = axes.map(a => Math.max(1, Math.ceil((range(a)[1] - range(a)[0]) / most)));
    const [h, w] = axes.map((a, k) => Math.ceil((range(a)[1] - range(a)[0]) / step[k]));
    const of = (list, other) => head.axes.map(a => (axes.includes(a) ? list[axes.indexOf(a)] : other));
    const fine = {
        w,
        h,
        channels: picture.channels,
        raw: new picture.raw.constructor(w * h * many),
        values: new Float64Array(w * h * many).fill(NaN),
        head: {
            ...head,
            by_budget: false,
            shape: of([h, w], many),
            every: of(step, 1),
            start: of(
                axes.map(a => range(a)[0]),
                0,
            ),
            step: of(step, 1),
        },
        steps: [step[1], step[0]],
    };
    const waiting = [[0, h, 0, w]];
    for (let asked = 1; waiting.length && wanted(); asked++) {
        const [y0, y1, x0, x1] = waiting.shift();
        const cut = [
            [y0, y1],
            [x0, x1],
        ].map(
            ([from, to], k) =>
                `${range(axes[k])[0] + from * step[k]}:${Math.min(range(axes[k])[1], range(axes[k])[0] + to * step[k])}:${step[k]}`,
        );
        const slice =
            "[" +
            view.shape
                .map((_, i) => (axes.includes(i) ? cut[axes.indexOf(i)] : i === view.channel ? ":" : view.index[i]))
                .join(",") +
            "]";
        if (asked > 256) throw new Error("A finer picture takes too many parts.");
        say(`Reading part ${asked} …`);
        const part = await ask("slice", { rev, path: head.path, slice, max: 8192 });
        if (part.head.every.some(n => n > 1)) {
            if (y1 - y0 < 2 && x1 - x0 < 2) throw new Error("One element takes more than the server reads at once.");
            const ym = y1 - y0 > 1 ? (y0 + y1) >> 1 : y1,
                xm = x1 - x0 > 1 ? (x0 + x1) >> 1 : x1;
            waiting.push(
                ...[
                    [y0, ym, x0, xm],
                    [y0, ym, xm, x1],
                    [ym, y1, x0, xm],
                    [ym, y1, xm, x1],
                ].filter(([a, b, c, d]) => b > a && d > c),
            );
            continue;
        }
        const p = view.picture(part);
        for (let y = 0; y < p.h; y++)
            for (const list of ["raw", "values"])
                fine[list].set(p[list].subarray(y * p.w * many, (y + 1) * p.w * many), ((y0 + y) * w + x0) * many);
    }
    return fine;
}

/* Whether all of a picture is a few parts, which then come unasked. */
function isFew(view, picture) {
    const { chunk, item_size } = view.node,
        in_all = view.shape.reduce(
            (n, _, i) =>
                n * (i === view.x || i === view.y ? Math.ceil((view.window[i][1] - view.window[i][0]) / chunk[i]) : 1),
            1,
        );
    return (
        picture.head.by_budget &&
        !picture.head.of &&
        view.y >= 0 &&
        in_all <= 512 &&
        in_all * chunk.reduce((a, b) => a * b, item_size) <= 2 ** 29
    );
}

/* A small line of the numbers of versions, which come newest first; nothing if there are not two. */
function sparkline(title, newestFirst) {
    const list = newestFirst.slice().reverse(),
        good = list.filter(Number.isFinite);
    if (good.length < 2) return [];
    const low = Math.min(...good),
        span = Math.max(...good) - low || 1;
    const points = list.flatMap((n, i) => (Number.isFinite(n) ? [`${i},${1 - (n - low) / span}`] : []));
    const line = vg("polyline", { points: points.join(" ") });
    const box = { viewBox: `0 -0.1 ${list.length - 1} 1.2`, preserveAspectRatio: "none" };
    return [el("p", null, title), vg("svg", { class: "spark", "aria-hidden": "true", ...box }, line)];
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
    get slice() {
        return this.view.shape.length ? this.view.slice() : "";
    }
    /* One question at a time: what is asked for meanwhile is only the last. */
    async load() {
        if (this.busy) {
            this.again = true;
            return;
        }
        this.busy = true;
        try {
            this.data = await ask("slice", {
                rev: this.rev,
                path: this.path,
                slice: this.slice,
                max: this.view.texts ? 64 : this.view.y < 0 ? 4096 : 1024,
            });
            this.fine = null;
            if (!this.again) this.draw();
            if (!this.again && !this.data.text && isFew(this.view, this.picture)) this.refine();
        } catch (e) {
            $(".summary", this.root).textContent = e.message;
            $(".stage", this.root).replaceChildren();
        }
        this.busy = false;
        if (this.again) {
            this.again = false;
            await this.load();
        }
    }
    draw() {
        const { view, root } = this,
            picture = (this.picture = this.fine || view.picture(this.data));
        if (this.fine)
            for (let i = 0; i < picture.values.length && !picture.channels; i++)
                picture.values[i] = view.reader.number(picture.raw[i]);
        const text = v => (view.reader.time ? view.reader.time(v) : show(v));
        const sums = this.data.text || picture.channels ? null : sumsOf(picture.values, picture.raw, this.node);
        const what = `${view.y >= 0 ? `${picture.w} × ` : ""}${countText(view.y >= 0 ? picture.h : picture.w, "element")} of ${this.path} at ${this.slice || "its only place"}`;
        let summary = `${what}, ${view.every(picture.head)}.`;
        if (picture.head.by_budget)
            summary += " A picture of all would decode too many chunks: zoom in, or ask for a finer one.";
        if (sums && sums.nan === sums.count) summary += ` None is a number; ${sums.fills} have the fill value.`;
        else if (sums)
            summary += ` From ${text(sums.low)} to ${text(sums.high)}, mean ${text(sums.mean)}; ${sums.nan} without a number, ${sums.fills} with the fill value.`;
        $(".summary", root).textContent = summary;
        if (root.dataset.slice !== undefined && root.dataset.slice !== this.slice) {
            $(".history", root).open = false;
            $(".history div", root).replaceChildren();
        }
        root.dataset.slice = this.slice;
        this.form.finer.hidden = !picture.head.by_budget || Boolean(this.fine) || this.data.text;
        if (this.data.text) {
            $(".stage", root).replaceChildren(textTable(view, picture));
            for (const e of $$(".values, .legend, .numbers, .whole, .history", root)) e.hidden = true;
            this.view.cursor = view.element(picture, 0, 0);
            this.pickers();
            return;
        }
        const look = (this.look = view.look([picture.values]));
        if (view.y < 0) this.drawLine(picture);
        else {
            if (!this.stage.figure.isConnected) $(".stage", root).replaceChildren(this.stage.figure);
            this.stage.draw(picture, look, summary);
        }
        $(".legend", root).replaceChildren(...(picture.channels || view.y < 0 ? [] : scaleBar(look, text)));
        $(".numbers", root).replaceChildren(
            ...(sums
                ? [
                      factTable("What is shown", [
                          ["Elements", sums.count],
                          ["Least", text(sums.low)],
                          ["Greatest", text(sums.high)],
                          ["Mean", text(sums.mean)],
                          ["Standard deviation", view.reader.time ? "–" : show(sums.std)],
                          ["NaN or missing", sums.nan],
                          ["Fill value", sums.fills],
                      ]),
                      ...histogram(binsOf(picture.values, sums.low, sums.high), text),
                  ]
                : []),
        );
        this.tell(
            (this.stage.cx = Math.min(this.stage.cx, picture.w - 1)),
            (this.stage.cy = Math.min(this.stage.cy, picture.h - 1)),
            true,
        );
        this.drawChunks();
    }
    drawLine(picture) {
        const stage = $(".stage", this.root),
            { view } = this;
        const range = el("input", {
            type: "range",
            min: 0,
            max: Math.max(0, picture.w - 1),
            value: Math.min(this.stage.cx, picture.w - 1),
            "aria-label": view.x >= 0 ? `Cursor along ${view.names[view.x]}` : "Cursor",
            oninput: e => move(+e.target.value),
        });
        const holder = el("div", { class: "line" }),
            refresh = x => holder.replaceChildren(plot(view, picture, x));
        const move = x => {
            this.stage.cx = x;
            this.view.moved = true;
            this.view.cursor = view.element(picture, x, 0);
            refresh(x);
            this.tell(x, 0, true);
        };
        refresh(+range.value);
        this.view.cursor = view.element(picture, +range.value, 0);
        holder.addEventListener("pointermove", e => {
            const r = holder.getBoundingClientRect();
            this.tell(
                Math.max(0, Math.min(picture.w - 1, Math.floor(((e.clientX - r.left) / r.width) * picture.w))),
                0,
                false,
            );
        });
        if (picture.w > 1) stage.replaceChildren(el("div", { class: "plotbox" }, holder, range));
        else stage.replaceChildren(el("p", null, bdi(valueText(view, picture, 0))));
    }
    tell(x, y, keep) {
        const { view, picture } = this,
            index = view.element(picture, x, y);
        $(".readout", this.root).textContent = `${view.place(index)} = ${valueText(view, picture, y * picture.w + x)}`;
        if (!keep) return;
        $(".blamed", this.root).textContent = "";
        const values = $(".values", this.root);
        const refill = () => $(".scroll", values).replaceChildren(around(view, picture, x, y));
        values.ontoggle = () => values.open && refill();
        if (values.open) refill();
    }
    /* A table has no cursor: fields say which of its elements is asked about. */
    pickers() {
        const { view } = this;
        const field = axis => {
            const [from, to] = view.window[axis];
            const set = e => (view.cursor[axis] = Math.max(from, Math.min(to - 1, Math.round(+e.target.value) || 0)));
            const label = `Which element along ${view.names[axis]}`;
            return el("input", {
                type: "number",
                min: from,
                max: to - 1,
                value: from,
                "aria-label": label,
                oninput: set,
            });
        };
        const axes = [view.y, view.x].filter(axis => axis >= 0);
        $(".pickers", this.root).replaceChildren(...axes.map(field));
    }
    async blame() {
        const out = $(".blamed", this.root),
            at = this.view.cursor || this.view.index;
        try {
            const { runs } = await ask("blame", { rev: this.rev, path: this.node.path, slice: this.view.slice(at) });
            out.replaceChildren(
                ...runs
                    .slice(0, 1)
                    .flatMap(r => [
                        `${this.view.place(at)}: `,
                        idLink(r.commit),
                        r.or_before ? " or before" : "",
                        ` by `,
                        bdi(r.author),
                        `, ${timeText(r.time)}`,
                    ]),
            );
            if (!runs.length) out.textContent = "it was never written";
        } catch (e) {
            out.textContent = e.message;
        }
    }
    /* Chunks as boxes over the picture, and as a table below. */
    async drawChunks() {
        const how = this.form.chunks.value,
            { view, root, picture } = this,
            marks = this.stage.marks;
        $$(".chunks", marks).forEach(e => e.remove());
        $(".chunktable", root)?.remove();
        if (!how || view.y < 0 || this.data.text) return;
        let c;
        try {
            c = await ask("chunks", {
                rev: this.rev,
                path: picture.head.path,
                slice: sliceOf(picture.head),
                commits: how === "last" ? 1 : "",
            });
        } catch (e) {
            say(e.message);
            return;
        }
        if (this.picture !== picture) return;
        $$(".chunks", marks).forEach(e => e.remove());
        const { head } = picture,
            group = vg(
                "g",
                { class: "chunks" },
                vg(
                    "defs",
                    null,
                    vg(
                        "pattern",
                        { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse" },
                        vg("path", { d: "M0 6L6 0", stroke: "#fff", "stroke-opacity": 0.6 }),
                    ),
                ),
            );
        const span = c.axes.map((_, k) => c.count.slice(k + 1).reduce((a, b) => a * b, 1)),
            rows = [];
        c.there.forEach((there, i) => {
            const at = c.axes.map((axis, k) => c.first[k] + (Math.floor(i / span[k]) % c.count[k]));
            const edge = axis => {
                const k = head.axes.indexOf(axis),
                    j = c.axes.indexOf(axis);
                const [from, to] = c.starts[j].slice(at[j] - c.first[j]);
                return [(from - head.start[k]) / head.step[k], (to - from) / head.step[k]];
            };
            const [x, w] = edge(view.x),
                [y, h] = edge(view.y);
            const ratio = c.bytes[i] ? c.decoded[i] / c.bytes[i] : 0;
            const box = vg("rect", { class: "chunk" + (there ? "" : " none"), x, y, width: w, height: h });
            if (how === "ratio" && ratio) {
                const k = 3 * shadeIndex(Math.log2(ratio), -1, 6);
                box.style.fill = `rgb(${MAPS.cividis.slice(k, k + 3).join(",")})`;
                box.style.fillOpacity = 0.55;
            }
            if (how === "last" && c.last[i] >= 0) {
                box.style.fill = `var(--l${c.last[i] % 6})`;
                box.style.fillOpacity = 0.5;
            }
            group.append(box);
            const commit = c.last && c.last[i] >= 0 ? c.commits[c.last[i]] : null;
            if (rows.length < 200)
                rows.push([
                    at.join(", "),
                    there ? "stored" : "not stored",
                    c.bytes[i] === null ? "" : bytesText(c.bytes[i]),
                    ratio ? ratio.toFixed(2) + " times" : "",
                    ...(c.last
                        ? [
                              commit
                                  ? idLink(commit.commit, `${commit.commit.slice(0, 8)}, ${timeText(commit.time)}`)
                                  : "",
                          ]
                        : []),
                ]);
        });
        marks.prepend(group);
        const stored = c.there.reduce((a, b) => a + b, 0);
        $(".legend", root).after(
            el(
                "details",
                { class: "chunktable" },
                el("summary", null, `${stored} of ${c.there.length} chunks here are stored`),
                tableOf("Chunks", ["Chunk", "State", "Bytes", "Compression", ...(c.last ? ["Last commit"] : [])], rows),
            ),
        );
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
        } catch (e) {
            say(e.message);
        }
    }
    async wholeStats() {
        const out = $(".whole div", this.root),
            { view } = this;
        try {
            const s = await ask("stats", { rev: this.rev, path: this.node.path });
            const text = v => (v === null ? "–" : typeof v === "number" ? view.reader.text(v) : v);
            out.replaceChildren(
                factTable("All elements", [
                    ["Elements", s.count],
                    ["Least", text(s.min)],
                    ["Greatest", text(s.max)],
                    ["Mean", typeof s.mean_text === "string" ? s.mean_text : text(s.mean)],
                    ["Standard deviation", s.std === null ? "–" : show(s.std)],
                    ["NaN", s.nan],
                    ["Infinite", s.infinite],
                    ["Fill value", s.fill],
                ]),
                ...histogram(
                    s.bins.map(b => ({ from: b.from, to: b.to, count: b.count })),
                    text,
                ),
            );
        } catch (e) {
            out.textContent = e.message;
        }
    }
    /* The slice that is shown, in the last versions that changed the array. */
    async history() {
        const out = $(".history div", this.root),
            { view } = this,
            slice = this.slice;
        let answer;
        try {
            answer = await ask("history", { rev: this.rev, path: this.node.path, n: 12 });
        } catch (e) {
            out.textContent = e.message;
            return;
        }
        const strip = el("div", { class: "strip" }),
            rows = [],
            means = [],
            sizes = [];
        out.replaceChildren(strip);
        for (const c of answer.commits) {
            const figure = el("figure", null),
                title = shorten(c.message.split("\n")[0], 60);
            let mean = NaN,
                note = "";
            strip.append(figure);
            if (c.there)
                try {
                    const picture = view.picture(
                        await ask("slice", { rev: c.id, path: c.path, slice, max: view.y < 0 ? 256 : 96 }),
                    );
                    const sums = sumsOf(picture.values, picture.raw, this.node);
                    mean = sums.mean;
                    if (view.y < 0) figure.append(plot(view, picture, 0));
                    else {
                        const canvas = el("canvas", {
                            role: "img",
                            "aria-label": `${slice} in ${c.id.slice(0, 8)}: from ${show(sums.low)} to ${show(sums.high)}`,
                        });
                        paint(canvas, picture, this.look || view.look([picture.values]), 128);
                        figure.append(canvas);
                    }
                } catch (e) {
                    note = e.message;
                }
            else note = "removed here";
            figure.append(
                el(
                    "figcaption",
                    null,
                    idLink(c.id),
                    " ",
                    bdi(title),
                    el("br"),
                    timeText(c.time),
                    note ? el("p", null, note) : null,
                ),
            );
            means.push(mean);
            sizes.push(c.stored || 0);
            rows.push([
                idLink(c.id),
                timeText(c.time),
                title,
                show(mean),
                c.stored === undefined ? "" : bytesText(c.stored),
                c.shape ? c.shape.join(" × ") : "",
            ]);
        }
        out.append(
            ...sparkline("Mean of the slice, oldest to newest", means),
            ...sparkline("Stored bytes, oldest to newest", sizes),
            tableOf("Versions", ["Commit", "Time", "Message", "Mean", "Stored", "Shape"], rows),
        );
    }
}

/* Opens an array, or the finest level of a picture in several sizes. */
async function openNode(path, rev) {
    const node = await ask("node", { rev, path });
    if (node.kind === "array") return node;
    const level = await ask("node", { rev, path: node.levels[0] }),
        { attributes } = node.document;
    const axes = (attributes.ome || attributes).multiscales[0].axes || [];
    const names = axes.map(axis => (typeof axis === "string" ? axis : axis.name));
    const dims = names.length === level.shape.length && !(level.dims || []).some(Boolean) ? names : level.dims;
    return { ...level, dims, levels: node.levels };
}

async function showViewer(mount) {
    const path = mount.dataset.path,
        rev = query.get("rev") || "";
    try {
        const node = await openNode(path, rev);
        if (node.shape.some(n => n === 0)) {
            mount.textContent = "The array has no elements.";
            return;
        }
        $("[aria-label='First elements']")?.remove();
        await new Viewer(mount, node, path, rev).load();
    } catch (e) {
        mount.replaceChildren(el("p", { class: "error" }, e.message));
    }
}

async function showPreview(mount) {
    const path = mount.dataset.path,
        rev = query.get("rev") || "";
    try {
        const node = await openNode(path, rev);
        const root = $("#t-viewer").content.firstElementChild.cloneNode(true),
            view = new View(node, path, root, () => {});
        if (view.texts || node.shape.some(n => n === 0) || !node.shape.length) return;
        let picture = view.picture(await ask("slice", { rev, path, slice: view.slice(), max: 256 }));
        if (isFew(view, picture)) picture = await inParts(view, rev, picture, 256, () => mount.isConnected);
        say("");
        const look = view.look([picture.values]),
            sums = sumsOf(picture.values, picture.raw, node);
        const summary =
            `${picture.w}${view.y >= 0 ? " × " + picture.h : ""} elements at ${view.slice()}, ${view.every(picture.head)}` +
            (picture.channels ? "." : `: from ${show(sums.low)} to ${show(sums.high)}.`);
        const canvas = el("canvas", { role: "img", "aria-label": summary });
        if (view.y >= 0) paint(canvas, picture, look, 384);
        mount.replaceChildren(view.y >= 0 ? canvas : plot(view, picture, 0), el("p", null, summary));
    } catch (e) {
        mount.textContent = e.message;
    }
}
