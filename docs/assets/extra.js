/* What the copy button copies, tables that scroll in themselves, and the versions that there are. */
(function () {
  "use strict"

  function typed(text, prompts) {
    const lines = []
    let continues = false
    for (const line of text.split("\n")) {
      const prompt = prompts.find(each => line.startsWith(each) || line === each.trim())
      if (continues || prompt) lines.push(continues && !prompt ? line : line.slice(prompt.length))
      continues = (continues || prompt) && prompts[0] === "$ " && line.endsWith("\\")
    }
    return lines.join("\n")
  }

  const prompts = { pycon: [">>> ", "... "], console: ["$ ", "> "] }

  document.querySelectorAll(".highlight").forEach(block => {
    const code = block.querySelector("pre code")
    if (!code) return
    const text = code.textContent
    const kind = text.startsWith(">>> ") ? "pycon" : text.startsWith("$ ") ? "console" : null
    if (kind) block.setAttribute("data-copy", typed(text, prompts[kind]))
  })

  const root = typeof __md_scope === "undefined" ? null : __md_scope
  if (!root) return
  const here = root.pathname.split("/").filter(Boolean).pop()
  const script = document.createElement("script")
  script.src = new URL("../versions.js", root).href
  script.onload = () => {
    const place = document.querySelector(".md-header__topic")
    const versions = window.dptextVersions || []
    if (!place || !versions.includes(here)) return
    if (versions.length === 1) {
      const note = document.createElement("span")
      note.className = "dptext-version"
      note.textContent = here
      place.appendChild(note)
      return
    }
    const choice = document.createElement("select")
    choice.className = "dptext-version"
    choice.setAttribute("aria-label", "Version of these pages")
    versions.forEach(version => choice.add(new Option(version, version, false, version === here)))
    choice.addEventListener("change", () => {
      location.href = new URL("../" + choice.value + "/index.html", root).href
    })
    place.appendChild(choice)
  }
  script.onerror = () => script.remove()
  document.head.appendChild(script)
})()
