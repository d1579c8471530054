import { Migration } from '@mikro-orm/migrations';

/** Where the trace of a change goes on: for its readers, in whatever process they are (W3C Trace Context). */
export class Migration20261126EventTraces extends Migration {
  override up(): void {
    this.addSql('alter table transaction_events add column traceparent text');
  }
}
