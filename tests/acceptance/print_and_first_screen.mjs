// Measures pages in headless Chromium: what the first screen shows, and what a print shows.
import { createRequire } from "node:module";

const [modules, chromium, ...pages] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { chromium: browserType } = require("playwright-core");
const browser = await browserType.launch({
  executablePath: chromium,
  args: [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});
const A4 = { width: 703, height: 1000 }; // 210 mm less margins of 12 mm, in CSS pixels
const found = [];
for (const page of pages) {
  const say = (where, what) => found.push(`${page} ${where}: ${what}`);
  for (const viewport of [{ width: 390, height: 844 }, { width: 1280, height: 800 }]) {
    const tab = await browser.newPage({ viewport });
    await tab.goto("file://" + page);
    const answers = await tab.evaluate(() =>
      ["what", "why", "change"].map((id) => {
        const card = document.getElementById(id).parentElement;
        const { top, bottom, left, right } = card.getBoundingClientRect();
        return { id, text: card.innerText.length, top, bottom, left, right };
      }),
    );
    for (const { id, text, top, bottom, left, right } of answers) {
      const inside = top >= 0 && left >= 0 && bottom <= viewport.height && right <= viewport.width;
      if (!inside) say(viewport.width, `${id} ends at ${Math.round(bottom)}, right ${Math.round(right)}`);
      if (text < 40) say(viewport.width, `${id} says nothing`);
    }
    await tab.close();
  }
  // Without script, so that it is the style that shows what is folded.
  const context = await browser.newContext({ viewport: A4, colorScheme: "dark", javaScriptEnabled: false });
  const tab = await context.newPage();
  await tab.goto("file://" + page);
  await tab.emulateMedia({ media: "print" });
  const printed = await tab.evaluate(() => ({
    folded: [...document.querySelectorAll("details")]
      .filter((part) => part.getBoundingClientRect().height < 1.5 * part.firstElementChild.getBoundingClientRect().height)
      .map((part) => part.innerText),
    cut: [...document.querySelectorAll("main *")]
      .filter((part) => part.getBoundingClientRect().right > innerWidth + 1 && !part.closest("svg"))
      .map((part) => `${part.tagName} ${part.className} ${part.textContent.slice(0, 40)}`),
    ground: getComputedStyle(document.body).backgroundColor,
    tools: [...document.querySelectorAll(".tools, .plot")].filter((part) => part.getClientRects().length).length,
  }));
  for (const text of printed.folded) say("print", `does not show ${text}`);
  for (const text of printed.cut.slice(0, 3)) say("print", `cuts ${text}`);
  if (printed.ground !== "rgb(255, 255, 255)") say("print", `is on ${printed.ground}`);
  if (printed.tools) say("print", `shows ${printed.tools} tools`);
  await context.close();
}
await browser.close();
console.log(JSON.stringify(found));
