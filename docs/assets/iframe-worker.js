/* The theme searches in a worker, and a browser starts none for a page that was opened from a disk. Here the worker's
   script runs in a hidden frame instead; messages go to and fro as they would with a worker. */
(function () {
  "use strict"
  if (location.protocol !== "file:") return

  class FrameWorker extends EventTarget {
    constructor(address) {
      super()
      this.onmessage = this.onmessageerror = this.onerror = null
      this.early = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.title = "search"
      this.frame.addEventListener("load", () => this.start(new URL(address, document.baseURI).href), { once: true })
      document.body.appendChild(this.frame)
    }

    start(address) {
      const inside = this.frame.contentWindow
      const outside = this
      inside.postMessage = message => outside.deliver(message)
      inside.importScripts = (...scripts) =>
        Promise.all(scripts.map(each => this.run(new URL(each, address).href)))
      this.run(address).then(() => {
        this.ready = true
        this.early.splice(0).forEach(message => this.postMessage(message))
      })
    }

    run(address) {
      return new Promise((done, failed) => {
        const script = this.frame.contentDocument.createElement("script")
        script.src = address
        script.onload = done
        script.onerror = () => failed(new Error("cannot load " + address))
        this.frame.contentDocument.head.appendChild(script)
      })
    }

    deliver(data) {
      const event = new MessageEvent("message", { data })
      if (this.onmessage) this.onmessage(event)
      this.dispatchEvent(event)
    }

    postMessage(data) {
      if (!this.ready) return void this.early.push(data)
      const inside = this.frame.contentWindow
      setTimeout(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }

  window.Worker = FrameWorker
})()
