import type { LoggedEvent } from './logged-event.ts';

const ENVELOPE_BYTES = 256;
const known = new WeakMap<LoggedEvent, number>();

/** About as many bytes as the event takes when it is sent. Counted once for all subscribers. */
export function eventBytes(event: LoggedEvent): number {
  const counted = known.get(event);
  if (counted !== undefined) return counted;
  const json = JSON.stringify(event.transaction, (_, value: unknown) =>
    typeof value === 'bigint' ? `${value}` : value,
  );
  const bytes = ENVELOPE_BYTES + Buffer.byteLength(json);
  known.set(event, bytes);
  return bytes;
}
