"use strict";
// Adds rows, and shows of each argument what its type needs. Without it everything is there to
// fill in, and saving brings one more empty row.
(() => {
  function follow(row) {
    const type = row.querySelector("[data-mcp-type]");
    if (!type) return;
    const show = () => {
      for (const input of row.querySelectorAll("[data-mcp-for]")) {
        input.closest(".mcp-field").hidden = input.dataset.mcpFor !== type.value;
      }
    };
    type.addEventListener("change", show);
    show();
  }

  function fade(row) {
    const remove = row.querySelector("input[name$='-DELETE']");
    if (!remove) return;
    const show = () => row.classList.toggle("mcp-removed", remove.checked);
    remove.addEventListener("change", show);
    show();
  }

  // The empty row is for browsers without scripts, where nothing else adds one.
  function dropEmpty(formset, rows, prefix, total) {
    const stored = Number(formset.querySelector(`[name="${prefix}-INITIAL_FORMS"]`).value);
    const row = rows.lastElementChild;
    if (!stored || rows.children.length <= stored) return;
    const filled = [...row.querySelectorAll("input[type=text], textarea")].some((one) => one.value);
    if (filled || row.querySelector(".errorlist")) return;
    row.remove();
    total.value = String(rows.children.length);
  }

  function start(formset) {
    const rows = formset.querySelector("[data-mcp-rows]");
    const empty = formset.querySelector("[data-mcp-empty]");
    const button = formset.querySelector("[data-mcp-add]");
    const prefix = formset.dataset.mcpFormset;
    const total = formset.querySelector(`[name="${prefix}-TOTAL_FORMS"]`);
    const most = Number(formset.querySelector(`[name="${prefix}-MAX_NUM_FORMS"]`).value);
    const limit = () => { button.hidden = Number(total.value) >= most; };
    dropEmpty(formset, rows, prefix, total);
    for (const row of rows.children) { follow(row); fade(row); }
    button.addEventListener("click", () => {
      const number = Number(total.value);
      const holder = document.createElement("div");
      holder.innerHTML = empty.innerHTML
        .replaceAll("__prefix__", String(number))
        .replaceAll("__number__", String(number + 1));
      const row = holder.firstElementChild;
      rows.append(row);
      total.value = String(number + 1);
      follow(row);
      fade(row);
      limit();
      row.querySelector("input:not([type=hidden]), select, textarea").focus();
    });
    limit();
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-mcp-formset]").forEach(start);
  });
})();
