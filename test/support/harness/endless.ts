import type { AccessWatch } from '../../../src/access/revocation/access-watch.ts';

/** A watch by which no token ends. */
export const ENDLESS: Pick<AccessWatch, 'watch'> = { watch: () => () => undefined };
