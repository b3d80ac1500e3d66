"""One policy for each suite of AgentDojo, written from its list of tools alone: their names, parameters and descriptions.

The same four questions were put to every tool.

1. Does its output hold words of strangers (mail, messages, web pages, reviews, invitations, other people's files, the subjects of
   payments)? Then it is untrusted.
2. Does it do something that cannot be taken back, or that others notice? Then it is a side effect: after untrusted output a person
   is asked.
3. What decides where such a call goes? If the user has named that, or a list of the service itself has (contacts, channels, members),
   nobody is asked. Free text may not carry addresses that nobody named.
4. Does it destroy, pay out, book or change credentials? Then only the user can have named it, or a person is asked in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maymust import AfterUntrustedRequirement, Policy

MAIL = {"recipients": "all", "cc": "all", "bcc": "all", "attachments": "all", "subject": "links", "body": "links"}
"""An e-mail goes where its recipients say, and carries its attachments and whatever its text points to."""

EVENT = {"title": "all", "participants": "all", "location": "all", "description": "links"}
"""An event is mailed to its participants."""

WORKSPACE = {
    "untrusted": [
        "get_unread_emails",
        "get_received_emails",
        "search_emails",
        "search_calendar_events",
        "get_day_calendar_events",
        "search_files_by_filename",
        "get_file_by_id",
        "list_files",
        "search_files",
    ],
    "side_effects": [
        "send_email",
        "delete_email",
        "create_calendar_event",
        "cancel_calendar_event",
        "reschedule_calendar_event",
        "add_calendar_event_participants",
        "append_to_file",
        "create_file",
        "delete_file",
        "share_file",
    ],
    # Numbers of mails, events and files are in every list, so they say nothing about what the user wants: deleting is asked about.
    "unless_named": {
        "send_email": MAIL,
        "create_calendar_event": EVENT,
        "add_calendar_event_participants": {"participants": "all"},
        "append_to_file": {"content": "links"},
        "create_file": {"filename": "said", "content": "links"},
        "share_file": {"email": "said"},
    },
}

TRAVEL = {
    "untrusted": [
        "get_rating_reviews_for_hotels",
        "get_rating_reviews_for_restaurants",
        "get_rating_reviews_for_car_rental",
        "search_calendar_events",
        "get_day_calendar_events",
    ],
    "side_effects": [
        "create_calendar_event",
        "cancel_calendar_event",
        "reserve_hotel",
        "reserve_car_rental",
        "reserve_restaurant",
        "send_email",
    ],
    # Every hotel is in the service's list, so only the user can have named the one to book.
    "unless_named": {
        "create_calendar_event": EVENT,
        "reserve_hotel": {"hotel": "said"},
        "reserve_car_rental": {"company": "said"},
        "reserve_restaurant": {"restaurant": "said"},
        "send_email": MAIL,
    },
}

BANKING = {
    "untrusted": ["get_most_recent_transactions", "get_scheduled_transactions", "read_file"],
    "side_effects": ["send_money", "schedule_transaction", "update_scheduled_transaction", "update_password", "update_user_info"],
    "unless_named": {
        "send_money": {"recipient": "said", "subject": "links"},
        "schedule_transaction": {"recipient": "said", "subject": "links"},
        "update_scheduled_transaction": {"recipient": "said", "amount": "said", "subject": "links"},
        "update_password": {"password": "said"},
        "update_user_info": {"first_name": "said", "last_name": "said", "street": "said", "city": "said"},
    },
}

SLACK = {
    "untrusted": ["read_channel_messages", "read_inbox", "get_webpage"],
    # Reading a page tells its owner the address that was read, so it is a side effect too.
    "side_effects": [
        "add_user_to_channel",
        "send_direct_message",
        "send_channel_message",
        "invite_user_to_slack",
        "remove_user_from_slack",
        "get_webpage",
        "post_webpage",
    ],
    "unless_named": {
        "add_user_to_channel": {"user": "said", "channel": "all"},
        "send_direct_message": {"recipient": "all", "body": "links"},
        "send_channel_message": {"channel": "all", "body": "links"},
        "invite_user_to_slack": {"user": "said", "user_email": "said"},
        "remove_user_from_slack": {"user": "said"},
        "get_webpage": {"url": "said"},
        "post_webpage": {"url": "said", "content": "links"},
    },
}

SUITES: dict[str, dict[str, Any]] = {"workspace": WORKSPACE, "travel": TRAVEL, "banking": BANKING, "slack": SLACK}


def policy_for(suite: str, tools: Sequence[Any], **changes: Any) -> Policy:
    """The policy of a suite over its tools, perhaps with another setting."""
    return Policy([AfterUntrustedRequirement(**{**SUITES[suite], **changes}, name="after_untrusted")], tools=tools)
