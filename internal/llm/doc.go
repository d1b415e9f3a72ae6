// Package llm asks language models. Model is the one port; Client speaks the
// OpenAI chat-completions protocol behind it, and everything else is a
// decorator round a Model. The order in which they are put together matters:
//
//	Redacting(Recording(Budgeted(client, budget), store, name), redactor)
//
// so that no secret reaches the recording or the wire, and no recorded answer
// is paid again. Errors are *failure.Error with origin model; what the
// provider said is kept, what it was told in confidence is masked.
package llm
