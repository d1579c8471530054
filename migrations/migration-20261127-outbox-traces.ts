import { Migration } from '@mikro-orm/migrations';

/** Where a trace goes on behind what waits: events for their relay, notifications for their registration (W3C Trace Context). */
export class Migration20261127OutboxTraces extends Migration {
  override up(): void {
    this.addSql('alter table outbox add column traceparent text');
    this.addSql('alter table parked_notifications add column traceparent text');
  }
}
