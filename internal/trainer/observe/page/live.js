"use strict";
// The server sends the whole <main> again; only the parts that differ are replaced, so that a reader keeps what is
// selected, scrolled or open in the others.
const said = document.getElementById("connection");
const say = (text, bad) => { if (said.textContent !== text) said.textContent = text; said.classList.toggle("bad", bad); };
const show = (text) => {
  const next = new DOMParser().parseFromString(text, "text/html").querySelector("main");
  const main = document.querySelector("main");
  const open = new Set([...main.querySelectorAll("details[open]")].map((d) => d.id));
  for (const part of next.children) {
    for (const d of part.matches("details") ? [part] : part.querySelectorAll("details")) d.open = open.has(d.id);
    const old = document.getElementById(part.id);
    if (old && !old.isEqualNode(part)) old.replaceWith(part.cloneNode(true));
  }
  document.title = next.dataset.title || document.title;
};
const source = new EventSource("events");
source.onmessage = (e) => { show(e.data); say("live", false); };
source.onerror = () => say("The connection to the master is lost; trying again.", true);
source.addEventListener("end", (e) => { source.close(); show(e.data); say("The master has ended; this is the last it said.", false); });
