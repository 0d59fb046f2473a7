// Bundles neuroglancer, with its workers beside it: node neuroglancer.mjs MODULES OUT
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [modules, out] = process.argv.slice(2).map((path) => resolve(path));
const { build } = createRequire(join(modules, "x.js"))("esbuild");
const lib = join(modules, "neuroglancer", "lib");
const raw = {
    name: "raw",
    setup(on) {
        on.onResolve({ filter: /^ikonate\// }, ({ path }) => ({ path, namespace: "icon" }));
        on.onLoad({ filter: /.*/, namespace: "icon" }, () => ({ contents: "<svg xmlns='http://www.w3.org/2000/svg'/>", loader: "text" }));
        on.onResolve({ filter: /\?raw$/ }, async ({ path, resolveDir, kind }) => {
            const found = await on.resolve(path.replace(/\?raw$/, ""), { resolveDir, kind });
            return { path: found.path, namespace: "raw" };
        });
        on.onLoad({ filter: /.*/, namespace: "raw" }, ({ path }) => ({ contents: readFileSync(path, "utf8"), loader: "text" }));
    },
};
mkdirSync(out, { recursive: true });
await build({
    stdin: {
        contents: 'import "neuroglancer"; import { setupDefaultViewer } from "neuroglancer/unstable/ui/default_viewer_setup.js"; '
            + "window.viewer ??= setupDefaultViewer();",
        resolveDir: modules, sourcefile: "main.js",
    },
    outfile: join(out, "main.js"), bundle: true, format: "esm", plugins: [raw], loader: { ".svg": "text" }, logLevel: "error",
});
await build({
    entryPoints: ["chunk_worker", "async_computation"].map((name) => join(lib, `${name}.bundle.js`)),
    outdir: out, bundle: true, format: "esm", plugins: [raw], loader: { ".svg": "text" }, logLevel: "error",
});
writeFileSync(join(out, "index.html"), "<!doctype html><meta charset=utf-8><link rel=icon href=data:,><link rel=stylesheet href=main.css>"
    + "<div id=neuroglancer-container style='position:absolute;inset:0'></div><script type=module src=main.js></script>");
