const BAR_WIDTH = 30;
const REDRAW_MS = 100;

/** The progress of a task: `done` of `total`, which is undefined if unknown, and a text to show with it. */
interface Step {
  done: number;
  total: number | undefined;
  text: string;
}

/** Shows progress as a bar on a terminal; writes nothing if the output is not a terminal. */
export class Progress {
  readonly #output;
  readonly #nowMs: () => number;
  #shownAtMs: number;
  #hasBar = false;

  constructor(
    output: { isTTY?: boolean; write(text: string): unknown },
    nowMs: () => number = () => performance.now(),
  ) {
    this.#output = output;
    this.#nowMs = nowMs;
    this.#shownAtMs = nowMs();
  }

  show(step: Step): void {
    if (!this.#output.isTTY) return;
    const now = this.#nowMs();
    if (now - this.#shownAtMs < REDRAW_MS) return;
    this.#shownAtMs = now;
    this.#hasBar = true;
    this.#output.write(`\r\u001b[K${bar(step)}${percent(step)}${step.text}`);
  }

  /** Removes the bar from the terminal. */
  end(): void {
    if (this.#hasBar) this.#output.write('\r\u001b[K');
    this.#hasBar = false;
  }
}

function bar({ done, total }: Step): string {
  if (total === undefined || total === 0) return '';
  const filled = Math.min(BAR_WIDTH, Math.floor((done / total) * BAR_WIDTH));
  return `[${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}] `;
}

function percent({ done, total }: Step): string {
  return total === undefined || total === 0 ? '' : `${String(Math.floor((done / total) * 100)).padStart(3)} %  `;
}

/** Returns a number with thousands separators. */
export function counted(number: number): string {
  return number.toLocaleString('en');
}

/** Returns a number with its noun. */
export function many(count: number, noun: string): string {
  return `${counted(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/**
 * Returns a text from outside with its control and formatting characters escaped, so that it cannot control the
 * terminal.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}
