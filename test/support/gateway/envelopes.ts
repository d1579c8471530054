/** The bodies of refusals, byte for byte (specification section 2.3). */
export function envelope(message: string): string {
  return `{"code":-1,"domain":0,"message":"${message}"}`;
}
