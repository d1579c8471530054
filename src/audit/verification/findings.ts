/** A problem of the audit: its kind, and a sentence that names the first record or seal concerned and says what was found. */
export interface Finding {
  kind: 'changed' | 'missing' | 'twice' | 'out of place' | 'cut off' | 'forged' | 'unchained' | 'erased' | 'not kept';
  message: string;
}

const MOST_FINDINGS = 20;

/** Collects findings; `count` counts those that are too many to keep, too. */
export class FindingList {
  readonly listed: Finding[] = [];
  count = 0;

  add(kind: Finding['kind'], message: string): void {
    this.count += 1;
    if (this.listed.length < MOST_FINDINGS) this.listed.push({ kind, message });
  }
}
