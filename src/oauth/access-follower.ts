import type { AccessChange } from './access-changes.ts';

/** Who wants to know of which changes. */
export interface Follow {
  kinds: readonly AccessChange['kind'][];
  /** How far back the first reading goes, in ms. */
  sinceMs: number;
  /** Another number than before: what was applied may be lost, and reading begins anew. */
  generation?(): number;
  apply(changes: readonly AccessChange[]): Promise<void>;
}

/** A follower and how far it has come. */
export interface Follower {
  tell(changes: readonly AccessChange[]): Promise<void>;
  /** Behind which `seq`, and at first from which time on, the next reading starts. */
  place(nowMs: number): { position: string; since: string | undefined };
  reached(position: string): void;
}

/** A follower at its beginning. */
export function accessFollower({ kinds, sinceMs, generation = () => 0, apply }: Follow): Follower {
  let position = '0';
  let isFirst = true;
  let begunIn = generation();
  return {
    async tell(changes) {
      const wanted = changes.filter(({ kind }) => kinds.includes(kind));
      if (wanted.length > 0) await apply(wanted);
    },
    place(nowMs) {
      const current = generation();
      if (current !== begunIn) {
        begunIn = current;
        position = '0';
        isFirst = true;
      }
      return { position, since: isFirst ? new Date(nowMs - sinceMs).toISOString() : undefined };
    },
    reached(reached) {
      position = reached;
      isFirst = isFirst && reached === '0';
    },
  };
}
