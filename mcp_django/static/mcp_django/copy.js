"use strict";
// A button that copies the text beside it. Without scripts people select the text themselves.
for (const part of document.querySelectorAll("[data-mcp-copy]")) {
  const source = part.querySelector("[data-mcp-source]");
  const button = part.querySelector("[data-mcp-button]");
  const status = part.querySelector("[data-mcp-status]");
  // Browsers have no clipboard for pages without TLS.
  if (navigator.clipboard) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.value ?? source.textContent);
        status.textContent = "Copied.";
      } catch {
        status.textContent = "The browser did not allow it. Select the text and copy it.";
      }
    });
  }
}
