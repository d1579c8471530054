import { randomUUID } from 'node:crypto';

/** A user to migrate, of a bulk request. */
export interface NewRow {
  wallet_address: string;
  email: string;
  external_id: string;
  name: string;
  surname: string;
}

/** Users that nobody has. */
export function newRows(count: number): NewRow[] {
  return Array.from({ length: count }, () => {
    const mark = randomUUID();
    return {
      wallet_address: `0x${mark.replaceAll('-', '')}`,
      email: `${mark}@example.com`,
      external_id: `customer-${mark}`,
      name: 'Ada',
      surname: 'Lovelace',
    };
  });
}
