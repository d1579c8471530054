import { type Administrator, administratorOf } from '../oauth/administration.rules.ts';
import { askerOf, type GraphqlContext } from './context.ts';

/** The node that an operation administers, and who does. @throws Error where an event is answered. */
export function administrating(context: GraphqlContext): [nodeId: string, by: Administrator] {
  const { principal } = askerOf(context);
  return [principal.nodeId, administratorOf(principal)];
}
