//! What is sent, to a server that really listens: templates, secrets, signatures, masks; and the messages for chats.

mod forms;
mod requests;
