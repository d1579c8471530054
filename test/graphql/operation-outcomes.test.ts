import { type ExecutionArgs, GraphQLError, parse } from 'graphql';
import { expect, it } from 'vitest';
import { OperationObserver } from '../../src/api/graphql/execution/operation-observer.ts';

const args = { document: parse('mutation { go }'), contextValue: {} } as unknown as ExecutionArgs;
const meant = new GraphQLError('not found');
const fault = new GraphQLError('boom', { originalError: new Error('boom') });
const reject = (error: unknown) => Promise.reject(error);

/** How often an outcome was counted, by its name. */
async function counted(observer: OperationObserver): Promise<object> {
  const { values } = await observer.durations.get();
  const counts = values.filter(
    ({ metricName, labels, value }) =>
      metricName?.endsWith('_count') && labels.graphql_operation_type === 'mutation' && value > 0,
  );
  return Object.fromEntries(counts.map(({ labels, value }) => [labels.outcome, value]));
}

it.each<[string, () => Promise<object>, string]>([
  ['without errors', async () => ({ data: {} }), 'ok'],
  ['with a client error', async () => ({ errors: [meant] }), 'error'],
  ['with an internal error among its errors', async () => ({ errors: [meant, fault] }), 'failed'],
  ['that was rejected', () => reject(meant), 'error'],
  ['that threw an error', () => reject(new Error('boom')), 'failed'],
])('an operation %s is counted with its outcome', async (_what, execute, outcome) => {
  const observer = new OperationObserver();
  await observer.run(args, execute).catch(() => undefined);
  expect(await counted(observer)).toEqual({ [outcome]: 1 });
});
