// Looks at pages in headless Chromium: accessibility by axe, no error, nothing wider than the window.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [modules, chromium, ...pages] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { chromium: browserType } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const browser = await browserType.launch({
  executablePath: chromium,
  args: [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});
const found = [];
for (const page of pages) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [390, 1280]) {
      const where = `${page} ${colorScheme} ${width}`;
      // The page's own policy keeps axe out, too.
      const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
      const tab = await context.newPage();
      tab.on("pageerror", (error) => found.push(`${where}: ${error.message}`));
      tab.on("request", (request) => {
        if (!request.url().startsWith("file:")) found.push(`${where}: asks for ${request.url()}`);
      });
      const began = Date.now();
      await tab.goto("file://" + page);
      const ms = Date.now() - began;
      if (ms > 3000) found.push(`${where}: opened in ${ms} ms`);
      await tab.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
      const wide = await tab.evaluate(() => document.documentElement.scrollWidth);
      if (wide > width) found.push(`${where}: is ${wide} wide`);
      await tab.evaluate(axe);
      const { violations } = await tab.evaluate(() => window.axe.run());
      for (const violation of violations) found.push(`${where}: ${violation.id}: ${violation.nodes[0].html}`);
      await context.close();
    }
  }
}
await browser.close();
console.log(JSON.stringify(found));
