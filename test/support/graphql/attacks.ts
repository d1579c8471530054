import type { Attack } from './attacks/attack.ts';
import { COST_ATTACKS } from './attacks/cost.ts';
import { DEPTH_ATTACKS } from './attacks/depth.ts';
import { DOCUMENTS_ATTACKS } from './attacks/documents.ts';
import { FRAGMENTS_ATTACKS } from './attacks/fragments.ts';
import { OPERATIONS_ATTACKS } from './attacks/operations.ts';
import { REQUESTS_ATTACKS } from './attacks/requests.ts';
import { SOCKET_ATTACKS } from './attacks/sockets.ts';
import { UPLOADS_ATTACKS } from './attacks/uploads.ts';
import { VALUES_ATTACKS } from './attacks/values.ts';
import { VARIABLES_ATTACKS } from './attacks/variables.ts';

/** What is tried on `/graphql`, and what must come of it: of the test, and of the bench that says what each costs. */
export const ATTACKS: readonly Attack[] = [
  ...DEPTH_ATTACKS,
  ...COST_ATTACKS,
  ...DOCUMENTS_ATTACKS,
  ...FRAGMENTS_ATTACKS,
  ...OPERATIONS_ATTACKS,
  ...VARIABLES_ATTACKS,
  ...VALUES_ATTACKS,
  ...REQUESTS_ATTACKS,
  ...UPLOADS_ATTACKS,
  ...SOCKET_ATTACKS,
];
