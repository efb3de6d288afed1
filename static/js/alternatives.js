// What would help: [data-alternatives="/url"] shows what that address sends, each time that more is known.
(() => {
  "use strict";

  const follow = (box) => {
    if (box.following) return;
    box.following = true;
    const tell = (text) => {
      if (!box.isConnected) return;
      const words = document.createElement("p");
      words.textContent = text;
      box.append(words);
    };
    const tellOfWindows = () => tell("Other windows of this browser took the connection. Open this again to play it once more.");
    let isOver = false;
    const source = window.muster.openStream(box.dataset.alternatives, { weight: 3, onLost: () => isOver || tellOfWindows() });
    if (!source) { tellOfWindows(); return; }
    const stop = () => { isOver = true; source.close(); };
    source.addEventListener("alternatives", (event) => {
      if (!box.isConnected) { stop(); return; }
      box.innerHTML = JSON.parse(event.data);
      window.muster?.freshen(box);
    });
    source.addEventListener("over", stop);
    // It would be played from the beginning again.
    source.addEventListener("error", () => {
      stop();
      tell("The connection broke before all was known. Open this again to play it once more.");
    });
    document.addEventListener("muster:closed", () => { if (!box.isConnected) stop(); });
  };

  const start = (root) => {
    if (root.matches?.("[data-alternatives]")) follow(root);
    root.querySelectorAll?.("[data-alternatives]").forEach(follow);
  };

  document.addEventListener("htmx:load", (event) => start(event.detail.elt));
  start(document);
})();
