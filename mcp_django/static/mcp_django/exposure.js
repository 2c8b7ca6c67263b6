"use strict";
// While a use of fields is as in code, its boxes show what that is: whoever changes one of them
// decides about this use. A field that records do not show leaves the uses that are as in code as
// well, and so does what lies behind it.
{
  const boxes = (table, use) => [...table.querySelectorAll(`[data-mcp-use="${use}"]`)];

  const show = (table) => {
    for (const code of table.querySelectorAll("[data-mcp-code]:checked")) {
      const use = code.dataset.mcpCode;
      const hidden = use === "fields" ? [] : boxes(table, "fields").filter((box) => !box.checked);
      for (const box of boxes(table, use)) {
        box.checked = "mcpStandard" in box.dataset && !hidden.some(
          ({value}) => box.value === value || box.value.startsWith(`${value}__`),
        );
      }
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    for (const table of document.querySelectorAll("[data-mcp-choices]")) {
      show(table);
      table.addEventListener("change", ({target}) => {
        const code = table.querySelector(`[data-mcp-code="${target.dataset.mcpUse}"]`);
        if (code) code.checked = false;
        show(table);
      });
    }
  });
}
