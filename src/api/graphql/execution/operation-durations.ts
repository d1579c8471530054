import { durations } from '../../../lib/meters.ts';

/**
 * Creates the metric of how long operations take, with zeros for outcomes that have not occurred yet. An operation ends
 * without errors, only with errors that the client may see, or with an unexpected error: over HTTP all three have the
 * status 200.
 */
export function operationDurations() {
  const metric = durations({
    name: 'graphql_operation_duration_seconds',
    help: 'Time to execute an operation (for a subscription, to start it), by type and outcome; excludes parsing, limits and sending.',
    labelNames: ['graphql_operation_type', 'outcome'],
  });
  for (const graphql_operation_type of ['query', 'mutation', 'subscription']) {
    for (const outcome of ['ok', 'error', 'failed']) metric.zero({ graphql_operation_type, outcome });
  }
  return metric;
}
