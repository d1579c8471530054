import { type GraphQLSchema, getVariableValues, type OperationDefinitionNode } from 'graphql';

/** Whether the variables hold for the operation; looks no further than the first fault. */
export function areVariablesGood(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): boolean {
  if (variableDefinitions.length === 0) return true;
  try {
    // One fault is enough: each is told with all of the object that it is in.
    const options = { maxErrors: 0, hideSuggestions: true };
    return getVariableValues(schema, variableDefinitions, variables, options).errors === undefined;
  } catch {
    return false;
  }
}

/** How many members all lists in a value have. */
export function membersOfLists(value: unknown): number {
  let count = 0;
  const open = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    if (Array.isArray(next)) count += next.length;
    for (const member of Object.values(next)) if (typeof member === 'object') open.push(member);
  }
  return count;
}
