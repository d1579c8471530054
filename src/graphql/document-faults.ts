import { GraphQLError, parse, validate } from 'graphql';
import type { PersistedDocuments } from './persisted-file.ts';
import { buildSchema } from './schema.ts';

/** What keeps each document from running on this schema: its id and the first fault; none where all can run. */
export function documentFaults(documents: PersistedDocuments): string[] {
  const schema = buildSchema();
  const faultOf = (document: string): string | undefined => {
    try {
      return validate(schema, parse(document))[0]?.message;
    } catch (error) {
      if (error instanceof GraphQLError) return error.message;
      throw error;
    }
  };
  return [...documents].flatMap(([id, document]) => {
    const fault = faultOf(document);
    return fault === undefined ? [] : [`has the document ${id}, which cannot run: ${fault}`];
  });
}
