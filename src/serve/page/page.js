/* page.js - the rest of the page: its parts, other views without loading everything, timeline, tree. */

async function showSound(place) {
    const check = async () => {
        place.textContent = "looking …";
        try {
            const s = await ask("sound", {});
            place.replaceChildren(
                s.nfaults
                    ? el("strong", null, `${countText(s.nfaults, "fault")}: ${s.faults[0].message}`)
                    : s.complete
                      ? `yes: ${s.checked} objects have the bytes that were stored`
                      : `no fault in the ${s.checked} objects that were looked at`,
            );
        } catch (e) {
            place.textContent = e.message;
        }
    };
    place.replaceChildren(el("button", { type: "button", onclick: check }, "Look"));
    if (+place.dataset.bytes < 64e6) await check();
}

async function showCounts(place) {
    place.textContent = "Counting …";
    try {
        const { counts } = await ask("summary", { counts: 1 }),
            n = x => x.toLocaleString("en");
        $("#totals").append(
            rowOf("Commits", n(counts.commits)),
            rowOf("Chunks", `${n(counts.chunks)} stored, used ${n(counts.chunk_refs)} times`),
            rowOf("Stored", `${bytesText(counts.stored_bytes)} for ${bytesText(counts.logical_bytes)} decoded`),
            rowOf("File", bytesText(counts.file_bytes)),
        );
        place.remove();
    } catch (e) {
        place.textContent = e.message;
    }
}

function showOpen(place) {
    const { file, commit, path } = place.dataset,
        part = text => text.split("/").map(encodeURIComponent).join("/");
    const url = new URL(
        `${encodeURIComponent(commit || "main")}/${part(file)}.zarr${path === "/" ? "" : part(path)}`,
        location.origin + location.pathname,
    ).href;
    $$(".url").forEach(e => {
        e.textContent = url;
    });
    $("#neuroglancer").href =
        "https://neuroglancer-demo.appspot.com/#!" +
        encodeURIComponent(JSON.stringify({ layers: [{ type: "image", name: path, source: "zarr3://" + url }] }));
    $("#vizarr").href = "https://hms-dbmi.github.io/vizarr/?source=" + encodeURIComponent(url);
}

function enhanceMain() {
    const viewers = [
        ["#viewer", showViewer],
        ["#preview", showPreview],
        ["#differ", showDiffer],
        ["#sound", showSound],
        ["#counts", showCounts],
        ["#open", showOpen],
    ];
    return Promise.all(viewers.map(([selector, show_]) => $(selector) && show_($(selector)))).then(() => {
        document.body.dataset.ready = String(+(document.body.dataset.ready || 0) + 1);
    });
}

/* The same version's other views come without a new page. */
async function visit(href, keep) {
    const next = new URLSearchParams(href);
    if ((next.get("rev") || "") !== (query.get("rev") || "") || next.get("from") || next.get("filter")) {
        location.assign(href);
        return;
    }
    try {
        const reply = await fetch(`${location.pathname}${href}&part=main`);
        if (!reply.ok) throw new Error(`the server answered ${reply.status}`);
        const page = new DOMParser().parseFromString(await reply.text(), "text/html");
        for (const id of ["where", "tabs", "main"]) $("#" + id).replaceChildren(...$("#" + id, page).childNodes);
        document.title = page.title;
    } catch {
        location.assign(href);
        return;
    }
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
    if (chosen === row) {
        chosen = null;
        button.setAttribute("aria-pressed", "false");
        say("");
        return;
    }
    button.setAttribute("aria-pressed", "true");
    if (!chosen) {
        chosen = row;
        say(`${row.dataset.id.slice(0, 8)} is chosen: choose another commit to compare`);
        return;
    }
    const rows = $$("#rows li"),
        [old, now] = rows.indexOf(chosen) > rows.indexOf(row) ? [chosen, row] : [row, chosen];
    $$(".pick[aria-pressed=true]").forEach(b => b.setAttribute("aria-pressed", "false"));
    chosen = null;
    say("");
    visit(hrefOf({ view: "diff", rev: query.get("rev"), a: old.dataset.id, b: now.dataset.id }));
}

async function fillTouched(rows) {
    for (let i = 0; i < rows.length; i += 25) {
        const part = rows.slice(i, i + 25);
        let answer;
        try {
            answer = await ask("touched", { ids: part.map(r => r.dataset.id).join(".") });
        } catch {
            return;
        }
        for (const row of part) {
            const t = answer.touched[row.dataset.id];
            if (!t) continue;
            const names = t.paths.slice(0, 3),
                more = t.n - names.length;
            $(".touched", row).replaceChildren(
                " · ",
                ...names.flatMap((n, k) => [k ? ", " : "", bdi(shorten(n, 60))]),
                more > 0 ? ` and ${more} more` : t.n ? "" : "nothing changed",
                t.chunks ? ` · ${countText(t.chunks, "chunk")}, about ${bytesText(t.bytes)} added` : "",
            );
        }
    }
}

function enhanceRows(rows) {
    for (const row of rows) {
        const old = $("a.pick", row);
        if (old)
            old.replaceWith(
                el(
                    "button",
                    {
                        type: "button",
                        class: "pick",
                        "aria-pressed": "false",
                        "aria-label": `Compare ${row.dataset.id.slice(0, 8)}`,
                        onclick: () => choose(row),
                    },
                    "Compare",
                ),
            );
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
        if (e.key === "c") {
            choose(row);
            return;
        }
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
    const list = $(".tree"),
        items = $$("li", list);
    if (!list) return;
    items.forEach((li, i) => {
        li.dataset.place = i;
    });
    $("#tree-filter").addEventListener("input", e => {
        const text = e.target.value.toLowerCase();
        for (const li of items)
            li.classList.toggle(
                "away",
                !$$("a", li).some(a => a.textContent.toLowerCase().includes(text)) &&
                    !(
                        li.parentElement.closest("li") &&
                        $("a", li.parentElement.closest("li")).textContent.toLowerCase().includes(text)
                    ),
            );
    });
    $("#tree-order").addEventListener("change", e => {
        const key = e.target.value,
            most = li => Math.max(...$$("a", li).map(a => +a.dataset[key] || 0));
        for (const ul of [list, ...$$("ul", list)])
            ul.append(
                ...[...ul.children].sort((a, b) => (key ? most(b) - most(a) : 0) || a.dataset.place - b.dataset.place),
            );
    });
}

document.documentElement.classList.add("script");
document.addEventListener("click", e => {
    const link = e.target.closest("a[href^='?']");
    if (
        !link ||
        e.defaultPrevented ||
        e.button ||
        e.ctrlKey ||
        e.metaKey ||
        e.shiftKey ||
        e.altKey ||
        link.matches(".older")
    )
        return;
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
