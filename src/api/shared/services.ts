import type { EventStreams } from '../../events/streams/event-streams.ts';
import type { IdempotentResponses } from '../../idempotency/idempotent-responses.ts';
import type { PageCursors } from '../../lib/keyset.ts';

/** The services that GraphQL fields and tools call. The composition root adds those of features. */
export interface FeatureServices {
  idempotentResponses: IdempotentResponses;
  streams: EventStreams;
  /** Signs and verifies the cursors of pages. */
  cursors: PageCursors;
}
