import { lexicographicSortSchema, printSchema } from 'graphql';
import { buildSchema } from './schema.ts';

/** The schema as text, sorted, as it stands in `schema/schema.graphql`. */
export function printedSchema(): string {
  return `${printSchema(lexicographicSortSchema(buildSchema()))}\n`;
}
