// When to ask the API again: often while something moves, rarely while nothing does, not at all while nobody looks.

const MOVING_MS = 2_000;
const STILL_MS = 15_000;
/** The longest pause after failures. */
const PAUSE_MS = 60_000;

/**
 * Calls `read` again and again; it answers whether something moves. The last data stay when it fails: `state` says how old they
 * are and why there are no newer ones.
 */
export class Poll {
  constructor(read, changed) {
    this.read = read;
    this.changed = changed;
    this.state = { at: 0, error: undefined, failures: 0, moving: false };
    this.seen = () => (document.hidden ? this.stop() : this.again());
    document.addEventListener("visibilitychange", this.seen);
  }
  /** Now, and from now on. */
  async again() {
    clearTimeout(this.timer);
    if (this.ended || document.hidden) return;
    if (this.running) return (this.wanted = true), this.running;
    this.running = this.once();
    await this.running;
    this.running = undefined;
    if (this.ended || document.hidden) return;
    if (this.wanted) return (this.wanted = false), this.again();
    this.timer = setTimeout(() => this.again(), this.pause());
  }
  async once() {
    this.control = new AbortController();
    try {
      const moving = await this.read(this.control.signal);
      this.state = { at: Date.now(), error: undefined, failures: 0, moving: Boolean(moving) };
    } catch (error) {
      if (this.control.signal.aborted) return;
      this.state = { ...this.state, error, failures: this.state.failures + 1 };
    }
    if (!this.ended) this.changed();
  }
  pause() {
    const { failures, error, moving } = this.state;
    if (error?.after) return error.after * 1000;
    if (failures) return Math.min(PAUSE_MS, MOVING_MS * 2 ** (failures - 1));
    return moving ? MOVING_MS : STILL_MS;
  }
  /** How many seconds old the data are; `undefined` if there are none. */
  age() {
    return this.state.at ? Math.floor((Date.now() - this.state.at) / 1000) : undefined;
  }
  stop() {
    clearTimeout(this.timer);
  }
  end() {
    this.ended = true;
    this.stop();
    this.control?.abort();
    document.removeEventListener("visibilitychange", this.seen);
  }
}
