import { z } from 'zod';

/** Members of what tools give. */
export const uuid = () => z.string().meta({ format: 'uuid' });
export const instant = () => z.string().meta({ format: 'date-time' });
/** An exact decimal: a text, since a number of JSON would lose digits. */
export const decimal = () => z.string();

/** What a node's row has, with `created_at` as the key of its place. */
export function placeOf({ created_at: at, id }: { created_at: string; id: string }): { at: string; id: string } {
  return { at, id };
}
