/* versions.js - two versions of an array. */

function changeFacts(change) {
    const e = change.elements,
        rows = [
            [
                "Change",
                change.storage_only
                    ? "storage only: no value differs"
                    : change.what + (change.from ? ` from ${change.from}` : ""),
            ],
            [
                "Chunks",
                `${change.chunks_added} added, ${change.chunks_changed} changed, ${change.chunks_removed} removed`,
            ],
        ];
    if (e && e.why) rows.push(["Elements", e.why]);
    else if (e) {
        rows.push(["Elements", `${e.changed} changed, ${e.added} added, ${e.removed} removed`]);
        if (e.max !== null && e.changed > 0)
            rows.push([
                "Differences as stored",
                `at most ${show(e.max)}` +
                    (e.mean === null ? "" : `, mean ${show(e.mean)}, root mean square ${show(e.rms)}`),
            ]);
    }
    return factTable("What differs", rows);
}

function metadataTable(change) {
    if (!change.metadata.length) return null;
    const text = v => (v === undefined ? "–" : typeof v === "string" ? v : JSON.stringify(v, null, 1));
    return tableOf(
        "Metadata",
        ["Member", "Old", "New"],
        change.metadata.map(m => [
            m.pointer,
            m.old_bytes ? bytesText(m.old_bytes) : text(m.old),
            m.new_bytes ? bytesText(m.new_bytes) : text(m.new),
        ]),
    );
}

class Differ {
    constructor(mount, node, change, sides) {
        this.root = $("#t-viewer").content.firstElementChild.cloneNode(true);
        $$(".values, .whole, .history, .numbers, [name=blame], [name=chunks], [name=finer]", this.root).forEach(e =>
            (e.closest("label") || e).remove(),
        );
        mount.append(this.root);
        Object.assign(this, { node, change, sides, mode: "beside", busy: false, again: false });
        this.view = new View(node, node.path, this.root, redraw =>
            redraw && this.pictures ? this.draw() : this.load(),
        );
        const choice = el(
            "label",
            null,
            "Show ",
            el(
                "select",
                {
                    name: "mode",
                    onchange: e => {
                        this.mode = e.target.value;
                        this.draw();
                    },
                },
                [
                    ["beside", "side by side"],
                    ["wipe", "wipe"],
                    ["blink", "blink"],
                ].map(([value, text]) => el("option", { value }, text)),
            ),
        );
        $(".looks", this.root).append(choice);
        const told = (x, y) => this.tell(x, y);
        this.stages = ["Old", "New", "Difference"].map(title => new Stage(this.view, title, told));
        this.boxes();
    }
    boxes() {
        const e = this.change.elements;
        if (!e || !e.boxes || !e.boxes.length) return;
        const text = b => "[" + b.first.map((n, i) => (n === b.last[i] ? n : `${n}:${b.last[i] + 1}`)).join(", ") + "]";
        $(".looks", this.root).after(
            el(
                "fieldset",
                { class: "boxed" },
                el("legend", null, `Changed boxes, the largest first (${e.nboxes})`),
                e.boxes
                    .slice(0, 24)
                    .map(b =>
                        el(
                            "button",
                            { type: "button", onclick: () => this.go(b) },
                            `${text(b)} · ${countText(b.size, "element")}`,
                        ),
                    ),
            ),
        );
        this.go(e.boxes[0], true);
    }
    /* Shows a box with some elements around it. */
    go(box, quiet) {
        const { view } = this;
        view.shape.forEach((length, i) => {
            const margin = Math.max(2, box.last[i] - box.first[i] + 1);
            view.index[i] = Math.min(length - 1, box.first[i]);
            view.window[i] = [
                Math.max(0, Math.min(length - 1, box.first[i] - margin)),
                Math.min(length, box.last[i] + 1 + margin),
            ];
        });
        view.tell();
        if (!quiet) this.load();
    }
    /* Of colours the largest difference of a channel is drawn. */
    mergeChannels(picture) {
        const { w, h, raw, channels } = picture,
            out = new Float64Array(w * h);
        raw.forEach((v, i) => {
            const at = Math.floor(i / channels);
            out[at] = Math.max(out[at], Math.abs(v));
        });
        Object.assign(picture, { raw: out, values: new Float64Array(out), channels: 0 });
    }
    async load() {
        if (this.busy) {
            this.again = true;
            return;
        }
        this.busy = true;
        const { sides, view, change } = this,
            slice = view.shape.length ? view.slice() : "",
            max = view.texts ? 32 : view.y < 0 ? 2048 : 512;
        const get = async over => {
            try {
                return view.picture(await ask("slice", { slice, max, ...over }));
            } catch (e) {
                return { error: e.message };
            }
        };
        const old = { rev: sides.a, path: change.from || change.path },
            now = { rev: sides.b, path: change.path };
        const pictures = await Promise.all([
            change.what === "added" ? { error: "not in this version" } : get(old),
            change.what === "removed" ? { error: "not in this version" } : get(now),
            change.what === "added" || change.what === "removed" || view.texts
                ? { error: "" }
                : get({ ...now, minus: sides.a, minuspath: old.path }),
        ]);
        if (pictures[2].channels) this.mergeChannels(pictures[2]);
        this.busy = false;
        if (this.again) {
            this.again = false;
            return this.load();
        }
        this.pictures = pictures;
        this.draw();
    }
    draw() {
        const { view, root } = this,
            stage = $(".stage", root),
            [old, now, difference] = this.pictures;
        clearInterval(this.timer);
        const good = [old, now].filter(p => !p.error);
        for (const p of good)
            if (!p.channels && !view.texts)
                p.raw.forEach((v, i) => {
                    p.values[i] = view.reader.number(v);
                });
        const differs = difference.error === undefined ? difference : null;
        const factor = (this.node.document.attributes || {}).scale_factor;
        if (differs)
            differs.raw.forEach((v, i) => {
                differs.values[i] = Number(v) * (!view.raw && typeof factor === "number" ? factor : 1);
            });
        const look = view.look(good.map(p => p.values)),
            most = differs ? Math.max(...limitsOf([differs.values], 0).map(Math.abs)) || 1 : 1;
        const looks = [look, look, { map: "diverging", low: -most, high: most }];
        const changed = differs ? differs.values.reduce((n, v) => n + (v !== 0), 0) : 0;
        const first = good[0] || old;
        const names = ["Old", "New", "Difference, new − old"],
            ids = [this.sides.a, this.sides.b, ""];
        let summary = first.error
            ? first.error
            : `${first.w}${view.y >= 0 ? " × " + first.h : ""} elements at ${view.shape.length ? view.slice() : "its only place"}, ${view.every(first.head)}.`;
        if (differs)
            summary += ` ${countText(changed, "element")} of them differ${changed === 1 ? "s" : ""}${changed ? `, by at most ${show(most)}` : ""}.`;
        else if (difference.error) summary += ` ${difference.error}.`;
        $(".summary", root).textContent = summary;
        root.dataset.slice = view.slice();
        const figures = this.pictures
            .map((p, i) => {
                if (p.error !== undefined)
                    return p.error
                        ? el(
                              "figure",
                              null,
                              el("figcaption", null, `${names[i]} ${ids[i].slice(0, 8)}`),
                              el("p", null, p.error),
                          )
                        : null;
                if (view.texts) return el("figure", null, el("figcaption", null, names[i]), textTable(view, p));
                if (view.y < 0)
                    return el(
                        "figure",
                        { class: "plotbox" },
                        plot(view, p, 0),
                        el(
                            "figcaption",
                            null,
                            `${names[i]} ${ids[i].slice(0, 8)}: from ${show(limitsOf([p.values], 0)[0])} to ${show(limitsOf([p.values], 0)[1])}`,
                        ),
                    );
                const s = this.stages[i];
                s.draw(p, looks[i], `${names[i]}: ${summary}`, 320);
                s.caption.replaceChildren(`${names[i]} `, ids[i] ? bdi(ids[i].slice(0, 12)) : "");
                return s.figure;
            })
            .filter(Boolean);
        const two = good.length === 2 && view.y >= 0 && !view.texts;
        stage.replaceChildren(
            ...(two && this.mode === "wipe"
                ? this.wipe(looks)
                : two && this.mode === "blink"
                  ? this.blink(looks)
                  : figures),
        );
        $(".legend", root).replaceChildren(
            ...(view.texts || view.y < 0 || first.channels
                ? []
                : [
                      el("p", null, "Old and new: ", ...scaleBar(look, show)),
                      ...(differs ? [el("p", null, "Difference: ", ...scaleBar(looks[2], show))] : []),
                  ]),
        );
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
        const cut = n => {
            now.style.clipPath = `inset(0 0 0 ${n}%)`;
        };
        cut(50);
        return [
            el(
                "div",
                null,
                el("div", { class: "wipe" }, old, now),
                el(
                    "p",
                    null,
                    el(
                        "label",
                        null,
                        "Old to new ",
                        el("input", {
                            type: "range",
                            name: "wipe",
                            min: 0,
                            max: 100,
                            value: 50,
                            oninput: e => cut(+e.target.value),
                        }),
                    ),
                ),
            ),
        ];
    }
    blink(looks) {
        const [old, now] = this.pair(looks),
            name = el("span", null, "old");
        const swap = () => {
            now.hidden = !now.hidden;
            name.textContent = now.hidden ? "old" : "new";
        };
        now.hidden = true;
        const stop = () => {
            clearInterval(this.timer);
            this.timer = 0;
        };
        const button = el(
            "button",
            {
                type: "button",
                "aria-pressed": "false",
                onclick: () => {
                    if (this.timer) stop();
                    else {
                        swap();
                        if (!calm()) this.timer = setInterval(() => (button.isConnected ? swap() : stop()), 800);
                    }
                    button.setAttribute("aria-pressed", String(Boolean(this.timer)));
                },
            },
            calm() ? "Swap" : "Blink",
        );
        return [el("div", null, el("div", { class: "wipe" }, old, now), el("p", null, button, " shown: ", name))];
    }
    tell(x, y) {
        const { view } = this,
            base = this.pictures.find(p => !p.error);
        const index = view.element(base, x, y),
            at = p =>
                p.error !== undefined
                    ? null
                    : p.channels
                      ? valueText(view, p, y * p.w + x)
                      : show(p.values[y * p.w + x]);
        const [a, b, d] = this.pictures.map(at);
        $(".readout", this.root).textContent =
            `${view.place(index)}: old ${a ?? "none"}, new ${b ?? "none"}${d === null ? "" : `, difference ${d}`}`;
        for (const s of this.stages)
            if (s.picture) {
                s.cx = x;
                s.cy = y;
                s.mark();
            }
    }
}

async function showDiffer(mount) {
    const path = mount.dataset.path,
        over = { a: query.get("a") || "", b: query.get("b") || "", path };
    let answer;
    mount.replaceChildren(el("h3", null, bdi(path)));
    try {
        try {
            answer = await ask("diff", { ...over, elements: 1 });
        } catch (e) {
            answer = await ask("diff", over);
            answer.note = e.message;
        }
        const change = answer.changes.find(c => c.path === path);
        if (!change) {
            mount.append(el("p", null, "It does not differ."));
            return;
        }
        mount.append(
            ...[
                changeFacts(change),
                answer.note ? el("p", { class: "note" }, `Elements were not compared: ${answer.note}.`) : null,
                metadataTable(change),
            ].filter(Boolean),
        );
        if (change.kind !== "array" || change.storage_only) return;
        const sides = { a: answer.a || "", b: over.b === UNCOMMITTED ? UNCOMMITTED : answer.b };
        const node = await ask("node", change.what === "removed" ? { rev: sides.a, path } : { rev: sides.b, path });
        if (node.shape.some(n => n === 0)) return;
        await new Differ(mount, node, change, sides).load();
    } catch (e) {
        mount.append(el("p", { class: "error" }, e.message));
    }
}
