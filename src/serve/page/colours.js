/* colours.js - colours of numbers, and what the numbers of a slice come to. */

function between(points, n) {
    const out = new Uint8Array(n * 3);
    for (let i = 0; i < n; i++) {
        const at = (i / (n - 1)) * (points.length - 1),
            k = Math.min(Math.floor(at), points.length - 2);
        for (let c = 0; c < 3; c++)
            out[3 * i + c] = Math.round(points[k][c] + (points[k + 1][c] - points[k][c]) * (at - k));
    }
    return out;
}
const VIRIDIS =
    "RAFURAJWRQRXRQVZRgdaRghcRgpdRgteRw1gRw5hRxBjRxFkRxNlSBRnSBZoSBdpSBhqSBpsSBttSBxuSB1vSB9wSCBxSCFz" +
    "SCN0SCR1SCV2SCZ3SCh4SCl5Ryp6Ryx6Ry17Ry58Ry99RjB+RjJ+RjN/RjSARTWBRTeBRTiCRDmDRDqDRDuEQz2EQz6FQj+F" +
    "QkCGQkGGQUKHQUSHQEWIQEaIP0eIP0iJPkmJPkqJPkyKPU2KPU6KPE+KPFCLO1GLO1KLOlOLOlSMOVWMOVaMOFiMOFmMN1qM" +
    "N1uNNlyNNl2NNV6NNV+NNGCNNGGNM2KNM2ONMmSOMmWOMWaOMWeOMWiOMGmOMGqOL2uOL2yOLm2OLm6OLm+OLXCOLXGOLHGO" +
    "LHKOLHOOK3SOK3WOKnaOKneOKniOKXmOKXqOKXuOKHyOKH2OJ36OJ3+OJ4COJoGOJoKOJoKOJYOOJYSOJYWOJIaOJIeOI4iO" +
    "I4mOI4qNIouNIoyNIo2NIY6NIY+NIZCNIZGMIJKMIJKMIJOMH5SMH5WLH5aLH5eLH5iLH5mKH5qKHpuKHpyJHp2JH56JH5+I" +
    "H6CIH6GIH6GHH6KHIKOGIKSGIaWFIaaFIqeFIqiEI6mDJKqDJauCJayCJq2BJ62BKK6AKa9/KrB/LLF+LbJ9LrN8L7R8MbV7" +
    "MrZ6NLZ5Nbd5N7h4OLl3Orp2O7t1Pbx0P7xzQL1yQr5xRL9wRsBvSMFuSsFtTMJsTsNrUMRqUsVpVMVoVsZnWMdlWshkXMhj" +
    "XsliYMpgY8tfZcteZ8xcac1bbM1abs5YcM9Xc9BWddBUd9FTetFRfNJQf9NOgdNNhNRLhtVJidVIi9ZGjtZFkNdDk9dBldhA" +
    "mNg+m9k8ndk7oNo5oto3pds2qNs0qtwyrdwwsN0vst0ttd4ruN4put4ovd8mwN8lwt8jxeAhyOAgyuEfzeEd0OEc0uIb1eIa" +
    "2OIZ2uMZ3eMY3+MY4uQY5eQZ5+QZ6uUa7OUb7+Uc8eUd9OYe9uYg+OYh++cj/ecl";
const ENDS = [
    [23, 50, 140],
    [90, 150, 220],
    [247, 247, 247],
    [225, 115, 80],
    [140, 10, 35],
];
const MAPS = {
    viridis: Uint8Array.from(atob(VIRIDIS), c => c.charCodeAt(0)),
    grey: between(
        [
            [0, 0, 0],
            [255, 255, 255],
        ],
        256,
    ),
    cividis: between(
        [
            [0, 34, 78],
            [18, 53, 112],
            [59, 73, 108],
            [87, 93, 109],
            [112, 113, 115],
            [138, 134, 120],
            [165, 156, 116],
            [195, 179, 105],
            [225, 204, 85],
            [254, 232, 56],
        ],
        256,
    ),
    diverging: Uint8Array.from([...between(ENDS.slice(0, 3), 128), ...between(ENDS.slice(2), 128)]),
};
const HATCH = [
    [150, 150, 150],
    [215, 215, 215],
];

const shadeIndex = (v, low, high) => {
    const at = ((v / 2 - low / 2) / (high / 2 - low / 2)) * 256;
    return !(at > 0) ? 0 : at >= 255 ? 255 : Math.floor(at);
};

function limitsOf(lists, how) {
    const values = [];
    for (const list of lists) {
        const step = Math.max(1, Math.floor(list.length / 65536));
        for (let i = 0; i < list.length; i += step) if (Number.isFinite(list[i])) values.push(list[i]);
    }
    if (!values.length) return [0, 1];
    const sorted = Float64Array.from(values).sort(),
        n = sorted.length - 1,
        p = how / 100;
    let low = sorted[Math.floor(n * p)],
        high = sorted[Math.ceil(n * (1 - p))];
    if (low === high) {
        low = sorted[0];
        high = sorted[n];
    }
    return low === high ? [low, low + Math.max(1, Math.abs(low) * 1e-9)] : [low, high];
}

/* Draws h rows of w elements, each as a block of pixels as wide and high as what it stands for; numbers, or bytes
 * of 3 or 4 channels. */
function paint(canvas, picture, look, size = 640) {
    const { w, h, values, channels } = picture,
        [across, down] = picture.steps || [1, 1];
    const scale = size / Math.max(w * across, h * down);
    let sx = Math.max(1, Math.floor(across * scale)),
        sy = Math.max(1, Math.floor(down * scale));
    if (h * sy < 48) sy = Math.ceil(48 / h);
    if (w * sx < 48) sx = Math.ceil(48 / w);
    canvas.width = w * sx;
    canvas.height = h * sy;
    Object.assign(canvas.dataset, { sx, sy, w, h });
    const context = canvas.getContext("2d"),
        image = context.createImageData(w * sx, h * sy),
        out = image.data;
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
                out[at] = tone[0];
                out[at + 1] = tone[1];
                out[at + 2] = tone[2];
                continue;
            }
            const k = 3 * shadeIndex(v, look.low, look.high);
            out[at] = map[k];
            out[at + 1] = map[k + 1];
            out[at + 2] = map[k + 2];
        }
    }
    context.putImageData(image, 0, 0);
}

/* ---- numbers of a slice -------------------------------- */

function sumsOf(values, raw, node) {
    let n = 0,
        nan = 0,
        fills = 0,
        low = Infinity,
        high = -Infinity,
        sum = 0,
        squares = 0;
    const fillNumber =
        typeof node.fill === "number"
            ? node.fill
            : node.fill === "NaN"
              ? NaN
              : typeof node.fill === "boolean"
                ? +node.fill
                : null;
    for (let i = 0; i < values.length; i++) {
        const v = values[i],
            r = raw ? Number(raw[i]) : v;
        if (fillNumber !== null && (r === fillNumber || (r !== r && fillNumber !== fillNumber))) fills++;
        if (v !== v) {
            nan++;
            continue;
        }
        n++;
        if (v < low) low = v;
        if (v > high) high = v;
        if (Number.isFinite(v)) sum += v;
    }
    const mean = n ? sum / n : NaN;
    for (let i = 0; i < values.length; i++) if (Number.isFinite(values[i])) squares += (values[i] - mean) ** 2;
    return {
        count: values.length,
        nan,
        fills,
        low: n ? low : NaN,
        high: n ? high : NaN,
        mean,
        std: n ? Math.sqrt(squares / n) : NaN,
    };
}

function binsOf(values, low, high, n = 24) {
    const counts = new Array(n).fill(0),
        width = high - low || 1;
    if (!Number.isFinite(low) || !Number.isFinite(high)) return [];
    for (let i = 0; i < values.length; i++)
        if (Number.isFinite(values[i])) counts[Math.min(n - 1, Math.floor(((values[i] - low) / width) * n))]++;
    return counts.map((count, i) => ({ from: low + (width * i) / n, to: low + (width * (i + 1)) / n, count }));
}

function histogram(bins, text) {
    const most = Math.max(1, ...bins.map(b => b.count)),
        n = bins.length;
    return [
        vg(
            "svg",
            {
                class: "histogram",
                viewBox: `0 0 ${n || 1} 1`,
                preserveAspectRatio: "none",
                role: "img",
                "aria-label": "Histogram; its numbers are in the table",
            },
            ...bins.map((b, i) =>
                vg("rect", { x: i + 0.05, width: 0.9, y: 1 - b.count / most, height: b.count / most }),
            ),
        ),
        el(
            "details",
            null,
            el("summary", null, "Histogram as a table"),
            tableOf(
                null,
                ["From", "To", "Elements"],
                bins.map(b => [text(b.from), text(b.to), b.count]),
            ),
        ),
    ];
}

function tableOf(caption, heads, rows) {
    return el(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": caption || heads.join(", ") },
        el(
            "table",
            null,
            caption ? el("caption", null, caption) : null,
            el(
                "thead",
                null,
                el(
                    "tr",
                    null,
                    heads.map(h => el("th", { scope: "col" }, h)),
                ),
            ),
            el(
                "tbody",
                null,
                rows.map(r =>
                    el(
                        "tr",
                        null,
                        r.map((c, i) =>
                            el(i ? "td" : "th", i ? null : { scope: "row" }, c instanceof Node ? c : bdi(c)),
                        ),
                    ),
                ),
            ),
        ),
    );
}
const bytesText = n => {
    if (n < 1000) return `${n} B`;
    let i = -1;
    do {
        n /= 1000;
        i++;
    } while (n >= 999.5 && i < 5);
    return `${n < 9.95 ? n.toFixed(1) : Math.round(n)} ${["kB", "MB", "GB", "TB", "PB", "EB"][i]}`;
};
const timeText = us => new Date(us / 1000).toISOString().slice(0, 16).replace("T", " ");
const idLink = (id, text) =>
    el("a", { href: hrefOf({ view: "overview", rev: id }), class: "id" }, text || id.slice(0, 8));
