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
