package dev.millrace.gateway;

import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.sampling.TurnEngine;
import java.time.Clock;

/** What all sessions of a running gateway share. */
record SessionContext(
        GatewayConfig config,
        SessionFence fence,
        TurnEngine engine,
        Tokenizer tokenizer,
        ToolFormat tools,
        GatewayMeters meters,
        Clock clock) {

    SessionTable sessions() {
        return fence.sessions();
    }

    SessionLog log() {
        return fence.log();
    }
}
