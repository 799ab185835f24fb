//! The table on DynamoDB.

use crate::breathe;
use crate::codec::{self, Raw};
use crate::error::{port_error, refused};
use crate::expression::{Expressions, key_condition};
use crate::{Aws, meter};
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::error::{ConditionalCheckFailedException, TransactionCanceledException};
use aws_sdk_dynamodb::types::{
    ConditionCheck, ConsumedCapacity, Delete, DeleteRequest, KeysAndAttributes, Put, PutRequest, ReturnConsumedCapacity,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update, WriteRequest,
};
use keelway_engine::item::{Item, Key, MAX_ITEM_BYTES};
use keelway_engine::ports::{Condition, Consistency, Cursor, Leftover, Page, PortError, Query, Store, Transacted, Write, Written};

const GET: &str = "dynamodb.GetItem";
const BATCH_GET: &str = "dynamodb.BatchGetItem";
const QUERY: &str = "dynamodb.Query";
const BATCH_WRITE: &str = "dynamodb.BatchWriteItem";
const PUT: &str = "dynamodb.PutItem";
const UPDATE: &str = "dynamodb.UpdateItem";
const DELETE: &str = "dynamodb.DeleteItem";
const TRANSACT: &str = "dynamodb.TransactWriteItems";

impl Store for Aws {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        meter::request(GET);
        let request = self.inner.dynamodb.get_item().table_name(self.table()).set_key(Some(codec::raw_key(key)));
        let answer = request.consistent_read(true).send().await.map_err(|error| port_error(GET, error))?;
        let item = answer.item.map(|raw| readable(GET, raw)).transpose()?;
        meter::read_by_key(&item, usize::from(item.is_none()), Consistency::Strong);
        Ok(item)
    }

    async fn get_batch(&self, keys: &[Key], consistency: Consistency) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        if keys.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        meter::request(BATCH_GET);
        let wanted = KeysAndAttributes::builder()
            .set_keys(Some(keys.iter().map(codec::raw_key).collect()))
            .consistent_read(consistency == Consistency::Strong)
            .build()
            .map_err(|error| refused(BATCH_GET, error.to_string()))?;
        let request = self.inner.dynamodb.batch_get_item().request_items(self.table(), wanted);
        let answer = request.send().await.map_err(|error| port_error(BATCH_GET, error))?;
        let found = answer.responses.into_iter().flatten().flat_map(|(_, raws)| raws);
        let found = found.map(|raw| readable(BATCH_GET, raw)).collect::<Result<Vec<_>, _>>()?;
        let unread = answer.unprocessed_keys.into_iter().flatten().flat_map(|(_, left)| left.keys);
        let unread: Vec<Key> = unread.filter_map(|raw| codec::key(&raw)).collect();
        meter::read_by_key(&found, keys.len().saturating_sub(unread.len() + found.len()), consistency);
        breathe(!unread.is_empty()).await;
        Ok((found, unread))
    }

    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        let Some(condition) = key_condition(query) else { return Ok(Page::default()) };
        meter::request(QUERY);
        let limit = i32::try_from(query.limit.max(1)).unwrap_or(i32::MAX);
        let request = self
            .inner
            .dynamodb
            .query()
            .table_name(self.table())
            .set_index_name(query.index.map(|index| index.names().0.to_owned()))
            .consistent_read(query.index.is_none())
            .key_condition_expression(condition.text)
            .set_expression_attribute_names(Some(condition.names))
            .set_expression_attribute_values(Some(condition.values))
            .scan_index_forward(!query.descending)
            .limit(limit)
            .set_exclusive_start_key(query.after.as_ref().map(|cursor| start_key(query, cursor)));
        let answer = request.send().await.map_err(|error| port_error(QUERY, error))?;
        let items = answer.items.into_iter().flatten().map(|raw| readable(QUERY, raw)).collect::<Result<Vec<_>, _>>()?;
        meter::read_page(&items, query.index.is_none());
        let next = answer.last_evaluated_key.filter(|key| !key.is_empty()).map(|key| cursor(query, &key));
        Ok(Page { items, next: next.flatten() })
    }

    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        if puts.is_empty() && deletes.is_empty() {
            return Ok(Leftover::default());
        }
        let mut writes = Vec::with_capacity(puts.len() + deletes.len());
        for item in puts {
            fits(BATCH_WRITE, item)?;
            let put = PutRequest::builder().set_item(Some(codec::raw(item))).build();
            writes.push(WriteRequest::builder().put_request(put.map_err(|e| refused(BATCH_WRITE, e.to_string()))?).build());
        }
        for key in deletes {
            let delete = DeleteRequest::builder().set_key(Some(codec::raw_key(key))).build();
            writes.push(WriteRequest::builder().delete_request(delete.map_err(|e| refused(BATCH_WRITE, e.to_string()))?).build());
        }
        meter::request(BATCH_WRITE);
        let request = self.inner.dynamodb.batch_write_item().request_items(self.table(), writes);
        let request = request.return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = request.send().await.map_err(|error| port_error(BATCH_WRITE, error))?;
        count(answer.consumed_capacity());
        let mut leftover = Leftover::default();
        for write in answer.unprocessed_items.into_iter().flatten().flat_map(|(_, writes)| writes) {
            leftover.puts.extend(write.put_request.map(|put| readable(BATCH_WRITE, put.item)).transpose()?);
            leftover.deletes.extend(write.delete_request.and_then(|delete| codec::key(&delete.key)));
        }
        breathe(leftover != Leftover::default()).await;
        Ok(leftover)
    }

    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        let total = ReturnConsumedCapacity::Total;
        let old = ReturnValuesOnConditionCheckFailure::AllOld;
        let client = &self.inner.dynamodb;
        match write {
            Write::Put(item, condition) => {
                fits(PUT, item)?;
                let when = Expressions::when(condition);
                let request = client.put_item().table_name(self.table()).set_item(Some(codec::raw(item)));
                let request = request.set_condition_expression(when.condition.clone());
                let request = request.set_expression_attribute_names(when.names()).set_expression_attribute_values(when.values());
                let request = request.return_consumed_capacity(total).return_values_on_condition_check_failure(old);
                meter::request(PUT);
                let answer = request.send().await;
                written(
                    write,
                    answer,
                    |answer| answer.consumed_capacity(),
                    |error| match error {
                        aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException(failed) => {
                            Some(failed)
                        }
                        _ => None,
                    },
                )
            }
            Write::Update { key, .. } | Write::Add { key, .. } => {
                let update = update(write);
                let request = client.update_item().table_name(self.table()).set_key(Some(codec::raw_key(key)));
                let request =
                    request.set_condition_expression(update.condition.clone()).set_update_expression(update.update.clone());
                let request = request.set_expression_attribute_names(update.names());
                let request = request.set_expression_attribute_values(update.values());
                let request = request.return_consumed_capacity(total).return_values_on_condition_check_failure(old);
                meter::request(UPDATE);
                let answer = request.send().await;
                written(
                    write,
                    answer,
                    |answer| answer.consumed_capacity(),
                    |error| match error {
                        aws_sdk_dynamodb::operation::update_item::UpdateItemError::ConditionalCheckFailedException(failed) => {
                            Some(failed)
                        }
                        _ => None,
                    },
                )
            }
            Write::Delete(key, condition) => {
                let when = Expressions::when(condition);
                let request = client.delete_item().table_name(self.table()).set_key(Some(codec::raw_key(key)));
                let request = request.set_condition_expression(when.condition.clone());
                let request = request.set_expression_attribute_names(when.names()).set_expression_attribute_values(when.values());
                let request = request.return_consumed_capacity(total).return_values_on_condition_check_failure(old);
                meter::request(DELETE);
                let answer = request.send().await;
                written(
                    write,
                    answer,
                    |answer| answer.consumed_capacity(),
                    |error| match error {
                        aws_sdk_dynamodb::operation::delete_item::DeleteItemError::ConditionalCheckFailedException(failed) => {
                            Some(failed)
                        }
                        _ => None,
                    },
                )
            }
            Write::Check(key, _) => Err(refused(UPDATE, format!("a check of {key} alone writes nothing: read the item instead"))),
        }
    }

    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        if writes.is_empty() {
            return Ok(Transacted::Done);
        }
        let items = writes.iter().map(|write| self.in_transaction(write)).collect::<Result<Vec<_>, _>>()?;
        meter::request(TRANSACT);
        let request = self.inner.dynamodb.transact_write_items().set_transact_items(Some(items));
        let answer = request.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
        let error = match answer {
            Ok(answer) => {
                count(answer.consumed_capacity());
                return Ok(Transacted::Done);
            }
            Err(error) => error,
        };
        match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                // Both phases of a transaction are billed, even if it is cancelled. The stored items are not known here.
                meter::wrote(writes.iter().map(|write| 2.0 * meter::write_units(None, write.result(None).as_ref())));
                why_cancelled(cancelled, writes.len())
            }
            _ => Err(port_error(TRANSACT, error)),
        }
    }
}

impl Aws {
    fn table(&self) -> &str {
        &self.inner.names.table
    }

    /// One write as part of a transaction. The stored items are not needed, so they are not requested.
    fn in_transaction(&self, write: &Write) -> Result<TransactWriteItem, PortError> {
        let bad = |error: aws_sdk_dynamodb::error::BuildError| refused(TRANSACT, error.to_string());
        let table = self.table();
        let builder = TransactWriteItem::builder();
        let item = match write {
            Write::Put(item, condition) => {
                fits(TRANSACT, item)?;
                let when = Expressions::when(condition);
                let put = Put::builder().table_name(table).set_item(Some(codec::raw(item)));
                let put = put.set_condition_expression(when.condition.clone());
                let put = put.set_expression_attribute_names(when.names()).set_expression_attribute_values(when.values());
                builder.put(put.build().map_err(bad)?)
            }
            Write::Update { key, .. } | Write::Add { key, .. } => {
                let expressions = update(write);
                let update = Update::builder().table_name(table).set_key(Some(codec::raw_key(key)));
                let update = update.set_condition_expression(expressions.condition.clone());
                let update = update.set_update_expression(expressions.update.clone());
                let update = update.set_expression_attribute_names(expressions.names());
                let update = update.set_expression_attribute_values(expressions.values());
                builder.update(update.build().map_err(bad)?)
            }
            Write::Delete(key, condition) => {
                let when = Expressions::when(condition);
                let delete = Delete::builder().table_name(table).set_key(Some(codec::raw_key(key)));
                let delete = delete.set_condition_expression(when.condition.clone());
                let delete = delete.set_expression_attribute_names(when.names()).set_expression_attribute_values(when.values());
                builder.delete(delete.build().map_err(bad)?)
            }
            Write::Check(key, Condition::Always) => {
                return Err(refused(TRANSACT, format!("a check of {key} without a condition checks nothing: leave it out")));
            }
            Write::Check(key, condition) => {
                let when = Expressions::when(condition);
                let check = ConditionCheck::builder().table_name(table).set_key(Some(codec::raw_key(key)));
                let check = check.set_condition_expression(when.condition.clone());
                let check = check.set_expression_attribute_names(when.names()).set_expression_attribute_values(when.values());
                builder.condition_check(check.build().map_err(bad)?)
            }
        };
        Ok(item.build())
    }
}

/// The expressions of an update.
fn update(write: &Write) -> Expressions {
    match write {
        Write::Update { condition, set, remove, raise, .. } => Expressions::update(condition, set, remove, *raise),
        Write::Add { condition, name, by, .. } => Expressions::add(condition, name, *by),
        Write::Put(_, condition) | Write::Delete(_, condition) | Write::Check(_, condition) => Expressions::when(condition),
    }
}

/// The result of a conditional write.
fn written<O, E>(
    write: &Write,
    answer: Result<O, SdkError<E, HttpResponse>>,
    used: impl Fn(&O) -> Option<&ConsumedCapacity>,
    conflict: impl Fn(&E) -> Option<&ConditionalCheckFailedException>,
) -> Result<Written, PortError>
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let request = name(write);
    let error = match answer {
        Ok(answer) => {
            count(used(&answer));
            return Ok(Written::Done);
        }
        Err(error) => error,
    };
    match error.as_service_error().and_then(conflict) {
        Some(failed) => {
            let item = failed.item().map(|raw| readable(request, raw.clone())).transpose()?;
            meter::wrote([meter::write_units(item.as_ref(), write.result(item.as_ref()).as_ref())]);
            Ok(Written::Conflict(item))
        }
        None => Err(port_error(request, error)),
    }
}

fn name(write: &Write) -> &'static str {
    match write {
        Write::Put(..) => PUT,
        Write::Update { .. } | Write::Add { .. } | Write::Check(..) => UPDATE,
        Write::Delete(..) => DELETE,
    }
}

/// Reads the reasons, which have the order of the writes. A conflict with another transaction is a conflict like any other: the
/// next read shows its result.
fn why_cancelled(cancelled: &TransactionCanceledException, writes: usize) -> Result<Transacted, PortError> {
    let codes: Vec<&str> = cancelled.cancellation_reasons().iter().map(|reason| reason.code().unwrap_or("None")).collect();
    let reason = || format!("transaction cancelled: {}", codes.join(", "));
    let never = |code: &&str| matches!(*code, "ValidationError" | "ItemCollectionSizeLimitExceeded" | "AccessDenied");
    let conflict = |code: &&str| matches!(*code, "ConditionalCheckFailed" | "TransactionConflict" | "DuplicateItem");
    if codes.iter().any(never) {
        return Err(PortError::Refused { request: TRANSACT, reason: reason() });
    }
    if codes.len() == writes && codes.iter().any(conflict) {
        return Ok(Transacted::Cancelled(codes.iter().map(conflict).collect()));
    }
    Err(PortError::Retry { request: TRANSACT, reason: reason() })
}

/// The start of the next page. For an index it includes the keys of the index, whose partition is that of the query.
fn start_key(query: &Query, cursor: &Cursor) -> Raw {
    let mut raw = codec::raw_key(&cursor.key);
    if let (Some(index), Some(sort)) = (query.index, &cursor.index_sort) {
        let (_, partition_name, sort_name) = index.names();
        raw.insert(partition_name.to_owned(), aws_sdk_dynamodb::types::AttributeValue::S(query.partition.clone()));
        raw.insert(sort_name.to_owned(), aws_sdk_dynamodb::types::AttributeValue::S(sort.clone()));
    }
    raw
}

fn cursor(query: &Query, raw: &Raw) -> Option<Cursor> {
    let index_sort = query.index.and_then(|index| raw.get(index.names().2)?.as_s().ok().cloned());
    Some(Cursor { key: codec::key(raw)?, index_sort })
}

fn readable(request: &'static str, raw: Raw) -> Result<Item, PortError> {
    codec::item(raw).ok_or_else(|| refused(request, "an item without the key attributes pk and sk: is this the right table?"))
}

fn fits(request: &'static str, item: &Item) -> Result<(), PortError> {
    match item.size() {
        size if size <= MAX_ITEM_BYTES => Ok(()),
        size => Err(refused(request, format!("item {} has {size} bytes, at most {MAX_ITEM_BYTES} are allowed", item.key))),
    }
}

fn count<'a>(used: impl IntoIterator<Item = &'a ConsumedCapacity>) {
    meter::wrote(used.into_iter().filter_map(ConsumedCapacity::capacity_units));
}
