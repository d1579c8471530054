import type { Attack } from './attacks/attack.ts';
import { DOCUMENT_ATTACKS } from './attacks/documents.ts';
import { REQUEST_ATTACKS } from './attacks/requests.ts';
import { SOCKET_ATTACKS } from './attacks/sockets.ts';
import { VALUE_ATTACKS } from './attacks/values.ts';

/** What is tried on `/graphql`, and what must come of it: of the test, and of the bench that says what each costs. */
export const ATTACKS: readonly Attack[] = [
  ...DOCUMENT_ATTACKS,
  ...VALUE_ATTACKS,
  ...REQUEST_ATTACKS,
  ...SOCKET_ATTACKS,
];
