import { GraphQLError, Kind } from 'graphql';
import { type Instant, parseInstant } from '../lib/iso-instant.ts';
import type { Builder } from './builder.ts';

/** Adds the scalars that GraphQL does not have itself. */
export function addScalars(builder: Builder): void {
  builder.scalarType('DateTime', {
    description:
      'An instant: ISO 8601 in UTC with milliseconds, such as 2026-11-21T10:30:00.123Z; any offset is taken.',
    serialize: (text) => text,
    parseValue: instantOf,
    parseLiteral: (node) => instantOf(node.kind === Kind.STRING ? node.value : undefined),
  });
}

function instantOf(value: unknown): Instant {
  const instant = typeof value === 'string' ? parseInstant(value) : undefined;
  if (instant === undefined) throw new GraphQLError('DateTime must be an ISO 8601 date and time');
  return instant;
}
