import type { GraphQLParams } from 'graphql-yoga';
import { type AppError, invalidRequest } from '../errors/app-error.ts';
import { JsonLimitError, parseJson } from '../lib/json.ts';

const FILE_PATH = /^variables\.(?!__)([A-Za-z_]\w*)$/;

/** Where the file of a multipart request belongs. */
export interface UploadMap {
  /** The name of the part that is the file. */
  part: string;
  /** The variable whose place it takes. */
  variable: string;
}

/** A refusal of a multipart request, which says of a part what to change. */
export function badPart(path: string, message: string): AppError {
  return invalidRequest([{ path, message }]);
}

/**
 * The part `operations` (GraphQL multipart request specification): one operation as JSON.
 * @throws AppError 400 for what is no JSON object; for a batch, too.
 */
export function parseOperations(text: string): GraphQLParams {
  const operations = parsed('operations', text);
  if (Array.isArray(operations)) throw badPart('operations', 'must be one operation: a batch brings no file');
  if (!isObject(operations)) throw badPart('operations', 'must be a JSON object with query and variables');
  return operations;
}

/**
 * The part `map`: the one file, and the one variable that it is for, such as `{"0": ["variables.file"]}`.
 * @throws AppError 400 for everything else.
 */
export function parseMap(text: string): UploadMap {
  const map = parsed('map', text);
  const [entry, ...others] = isObject(map) ? Object.entries(map) : [];
  if (!entry || others.length > 0) throw badPart('map', 'must be a JSON object with one member, for one file');
  const [part, paths] = entry;
  if (!Array.isArray(paths) || paths.length !== 1) throw badPart('map', 'must name one place for the file');
  const variable = FILE_PATH.exec(String(paths[0]))?.[1];
  if (variable === undefined) throw badPart('map', 'must name the variable of the file, such as "variables.file"');
  return { part, variable };
}

/**
 * The operation with the file in its place.
 * @throws AppError 400 where there is no null for it.
 */
export function withFile(operations: GraphQLParams, variable: string, file: unknown): GraphQLParams {
  const variables: unknown = operations.variables;
  const isPlace = isObject(variables) && Object.hasOwn(variables, variable) && variables[variable] === null;
  if (!isPlace) throw badPart('operations', `must have null in variables.${variable}, where the file belongs`);
  return { ...operations, variables: { ...variables, [variable]: file } };
}

function parsed(path: string, text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof JsonLimitError) throw badPart(path, error.message);
    if (error instanceof SyntaxError) throw badPart(path, 'must be JSON');
    throw error;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
