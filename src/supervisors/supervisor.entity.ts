import { defineEntity, p } from '@mikro-orm/core';

/** A person who logs in by the password grant. `passwordHash` is an Argon2id PHC string. */
export const Supervisor = defineEntity({
  name: 'Supervisor',
  tableName: 'supervisors',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    username: p.text(),
    passwordHash: p.text(),
    role: p.text(),
    status: p.text().$type<'active' | 'disabled'>().default('active'),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    updatedAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});

/** A failed login, whether or not the (lower-cased) username exists. */
export const LoginFailure = defineEntity({
  name: 'LoginFailure',
  tableName: 'login_failures',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    username: p.text(),
    failedAt: p.datetime(6).$type<string>(),
  },
});
