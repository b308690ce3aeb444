import { nextTides } from "../lib/tides.js";

const list = document.querySelector("#tides");
for (const tide of nextTides(new Date(), 6)) {
  const item = document.createElement("li");
  item.textContent = `${tide.kind} water at ${tide.time.toLocaleTimeString()}`;
  list.append(item);
}
