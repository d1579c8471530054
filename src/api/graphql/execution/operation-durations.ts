import { durations } from '../../../lib/meters.ts';

const OPERATION_TYPES = ['query', 'mutation', 'subscription'];
/**
 * How an operation ended: without errors, only with errors that the client may see, or with an unexpected error. Over
 * HTTP all three have the status 200.
 */
export const OPERATION_OUTCOMES = ['ok', 'error', 'failed'] as const;

/** How long operations take, by type and outcome. */
export type OperationDurations = ReturnType<typeof operationDurations>;

/** Creates the metric of operations, with zeros for outcomes that have not occurred yet. */
export function operationDurations() {
  const metric = durations({
    name: 'graphql_operation_duration_seconds',
    help: 'Time to execute an operation (for a subscription, to start it), by type and outcome; excludes parsing, limits and sending.',
    labelNames: ['graphql_operation_type', 'outcome'],
  });
  for (const graphql_operation_type of OPERATION_TYPES) {
    for (const outcome of OPERATION_OUTCOMES) metric.zero({ graphql_operation_type, outcome });
  }
  return metric;
}
