/** Bytes to messages: one JSON object per line. Splits at LF only, as a JSON string may contain U+2028. */

/** Larger frames come from no sidecar: its own limit is half of it. */
export const MAX_INCOMING_BYTES = 64 * 1024 * 1024;

const LF = 0x0a;

/** Cuts a stream of bytes into lines. */
export class LineSplitter {
  #parts: Buffer[] = [];
  #size = 0;

  /** The whole lines that `chunk` completes. Throws when a line is longer than any frame. */
  feed(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
      lines.push(this.#complete(chunk.subarray(start, end)));
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    return lines;
  }

  #complete(last: Buffer): Buffer {
    if (this.#parts.length === 0) return last;
    const line = Buffer.concat([...this.#parts, last]);
    this.#parts = [];
    this.#size = 0;
    return line;
  }

  #keep(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > MAX_INCOMING_BYTES) throw new RangeError(`a frame of over ${MAX_INCOMING_BYTES} bytes`);
    this.#parts.push(part);
  }
}
