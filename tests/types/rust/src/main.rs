//! Compiles the generated types, and decodes with them what the sidecar has said in the transcripts.
//! Arguments: the folder of the transcripts.

#[allow(dead_code)]
#[path = "../../../../protocol/types/sidecar.rs"]
mod sidecar;

use serde::de::DeserializeOwned;
use serde_json::{json, Value};
use sidecar::*;

fn main() {
    let folder = std::env::args().nth(1).expect("the folder of the transcripts");
    let events = read_events(&folder);
    assert!(events.len() > 500, "only {} events", events.len());
    events.iter().for_each(keeps::<Event>);
    let items: Vec<&Value> = events.iter().filter_map(|event| event.pointer("/data/item")).collect();
    assert!(items.len() > 100, "only {} items", items.len());
    items.into_iter().for_each(keeps::<Item>);
    a_later_event_item_and_value_are_kept(&events);
    a_prompt_is_sent_with_the_names_of_the_contract();
    println!("{} events decoded and encoded again", events.len());
}

fn read_events(folder: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().map_or(false, |ending| ending == "jsonl") {
            let text = std::fs::read_to_string(path).expect("a transcript");
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            let messages = lines.filter_map(|mut line| line.get_mut("message").map(Value::take));
            found.extend(messages.filter(|one| one["method"] == "event").map(|one| one["params"].clone()));
        }
    }
    found
}

/// Without the members that are null: in what a client reads they mean the same as absent ones.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, own)| !own.is_null());
            kept.map(|(name, own)| (name.clone(), without_nulls(own))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        _ => value.clone(),
    }
}

/// The value is decoded, and encoded as it was.
fn keeps<T: DeserializeOwned + serde::Serialize>(value: &Value) {
    let decoded: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"));
    assert_eq!(without_nulls(&serde_json::to_value(&decoded).expect("encodes")), without_nulls(value));
}

fn a_later_event_item_and_value_are_kept(events: &[Value]) {
    let mut later = events[0].clone();
    later["type"] = json!("chat.painted");
    later["data"] = json!({"colour": "green"});
    keeps::<Event>(&later);
    assert!(matches!(serde_json::from_value(later), Ok(Event::Other(_))));

    let item = json!({"id": "i-1", "turnId": "t-1", "type": "drawing", "status": "sketched", "startedAt": 1});
    keeps::<Item>(&item);
    match serde_json::from_value(item) {
        Ok(Item::Other(other)) => assert_eq!(other.status, ItemStatus::Unknown("sketched".to_owned())),
        read => panic!("{read:?}"),
    }
}

fn a_prompt_is_sent_with_the_names_of_the_contract() {
    let params = PromptSendParams { prompt_id: "p-1".to_owned(), text: Some("Hello".to_owned()), ..Default::default() };
    assert_eq!(serde_json::to_value(params).expect("encodes"), json!({"promptId": "p-1", "text": "Hello"}));
    assert_eq!(<methods::PromptSend as Call>::NAME, "prompt/send");
    let opened = ChatOpenParams { after: Some(ChatOpenParamsAfter::Cursor(Cursor { epoch: "e".to_owned(), seq: 3 })), ..Default::default() };
    assert_eq!(serde_json::to_value(opened).expect("encodes"), json!({"after": {"epoch": "e", "seq": 3}}));
}
