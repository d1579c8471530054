/** What a client knows of one request, or of one socket. */
export interface Sent {
  kind: string;
  /** The status, once the answer's last byte has come. */
  status: number | undefined;
  /** The fewest and the most records that there can be of it. */
  least: number;
  most: number;
  /** When its client left without waiting for the end, on the clock of `performance`. */
  leftAtMs: number | undefined;
  /** What a record of it must tell. */
  isTrue(record: Recorded): boolean;
}

/** A record, as far as a client can know it. */
export interface Recorded {
  correlation_id: string;
  status_code: number;
  aborted: boolean;
}

/** Where journal and records do not agree; every list is empty when each request has its records exactly once. */
export interface Disagreements {
  lost: string[];
  twice: string[];
  /** Records of what was never sent. */
  invented: string[];
  /** Records that tell another status, or of another end, than the client saw. */
  untrue: string[];
}

/** A server that lives so much longer has heard that a client has left, however busy the machine is. */
const HEARD_WITHIN_MS = 10_000;

/** Every request over all lives of an instance, by its correlation id. */
export class Journal {
  readonly sent = new Map<string, Sent>();
  #answered = 0;
  #unsettled: Sent[] = [];

  get answered(): number {
    return this.#answered;
  }

  /** A request goes out that has so many operations; a record of what is not answered must tell as much as is known. */
  begin(correlationId: string, kind: string, operations = 1, isTrue: Sent['isTrue'] = () => true): Sent {
    const entry: Sent = { kind, status: undefined, least: 0, most: operations, leftAtMs: undefined, isTrue };
    this.sent.set(correlationId, entry);
    return entry;
  }

  /** The last byte of its answer is there. One that is refused as a whole has one record. */
  answer(entry: Sent, status: number): void {
    if (status !== 200) entry.most = 1;
    entry.least = entry.most;
    entry.status = status;
    entry.isTrue = (record) => record.status_code === status && !record.aborted;
    this.#answered += 1;
  }

  /** Its client has left after the server had taken it. */
  leave(entry: Sent): void {
    entry.leftAtMs = performance.now();
    this.#unsettled.push(entry);
  }

  /** The instance has been killed at this time, or stopped in order: of what it had heard there must be a record. */
  settle(endedAtMs: number): void {
    for (const entry of this.#unsettled) {
      if (endedAtMs - (entry.leftAtMs ?? 0) > HEARD_WITHIN_MS) entry.least += 1;
    }
    this.#unsettled = [];
  }

  compare(records: readonly Recorded[]): Disagreements {
    const found: Disagreements = { lost: [], twice: [], invented: [], untrue: [] };
    const recordsOf = Map.groupBy(records, (record) => record.correlation_id);
    for (const id of recordsOf.keys()) if (!this.sent.has(id)) found.invented.push(id);
    for (const [id, entry] of this.sent) {
      const own = recordsOf.get(id) ?? [];
      const told = `${id} (${entry.kind}): ${own.length} of ${entry.least} to ${entry.most}`;
      if (own.length < entry.least) found.lost.push(told);
      if (own.length > entry.most) found.twice.push(told);
      if (!own.every(entry.isTrue)) found.untrue.push(`${told} ${JSON.stringify([entry, own])}`);
    }
    return found;
  }
}
