// What waits for a person, for the number in the title: looked at rarely, whatever the screen.

import { api } from "./api.js";
import { Poll } from "./poll.js";

export const inbox = {
  count: 0,
  items: [],
  begin(changed) {
    this.poll?.end();
    this.poll = new Poll(async (signal) => {
      const { items } = await api.get("/v1/wait?pageSize=100", { signal });
      this.items = items;
      this.count = items.filter((item) => item.group === "person").length;
      return false;
    }, changed);
    this.poll.again();
  },
  again() {
    this.poll?.again();
  },
  end() {
    this.poll?.end();
    Object.assign(this, { poll: undefined, count: 0, items: [] });
  },
};
