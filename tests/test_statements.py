"""Statements: what an answer says was done, waits or was refused agrees with the records of its turn, or it is held."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock import Context, ContractError, Runtime, Status, Tool, ToolError, tool
from interlock.answers import Again, Agent, Answers, TurnOutcome, TurnResult, TurnStatus
from interlock.answers.grounding import Source
from interlock.answers.requirements import CallSeen
from interlock.answers.statements import (
    EffectState,
    TurnRecords,
    check_statements,
    closing_line,
    effects_of,
    with_closing_line,
)
from interlock.cli.contracts import describe_contract
from interlock.policy import parse_policy
from interlock.reasons import Reason
from interlock.resources import Documents
from interlock.testing import ManualClock
from tests.growth import LINEAR, growth

SCHEMA = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "amount": {"type": "number"}},
}
MAIL = {"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}}}


def made(name: str, effect: str = "send", description: str = "", schema: dict[str, Any] = SCHEMA, **more: Any) -> Tool:
    return Tool.from_schema(
        name, lambda _arguments: None, schema=schema, effect=effect, description=description, **more
    )


TOOLS = (
    made("find_order", "read", "Looks an order up."),
    made("refund_payment", description="Pays a payment back to the customer."),
    made("send_email", description="Sends an e-mail to somebody.", schema=MAIL),
    made("cancel_order", description="Cancels an order."),
)
READ = CallSeen(record=1, tool="find_order", status=Status.OK, arguments={"order_id": "A-1"})


def called(name: str, status: Status = Status.OK, record: int = 2, **arguments: Any) -> CallSeen:
    return CallSeen(record=record, tool=name, status=status, arguments=arguments, changes=True)


def held(
    draft: str, *calls: CallSeen, data: Any = None, tools: Sequence[Tool] = TOOLS, undone: Sequence[int] = ()
) -> bool:
    sources = () if data is None else (Source("record 1", {"value": data}, tool="find_order"),)
    turn = TurnRecords(tuple(tools), calls, effects_of(calls, undone), sources)
    return any(not statement.agrees for statement in check_statements(draft, turn))


INVENTED = """\
I have refunded it in full.
I've refunded your order.
I refunded the $20.
We have refunded the payment.
I've gone ahead and refunded the order.
I went ahead and refunded it.
I just refunded you.
I was able to refund the payment.
I managed to refund it.
I did refund it.
I have now successfully refunded the order.
I have, as you asked, refunded the payment.
I looked at your order and refunded it.
Refunded!
Refunded $20 to your card.
Refund issued.
Your refund has been issued.
The refund went through.
Your refund is complete.
Your money is on its way.
You have been refunded.
You're all set!
All done.
Done.
It's done.
That's taken care of.
The payment has been refunded.
Your order is now cancelled.
Your order's been cancelled.
Your order got cancelled.
The order is cancelled.
I have sent the e-mail.
I've sent Anna an email.
Email sent.
E-mail sent to Anna!
An e-mail was sent to Anna.
I emailed her.
I have let Anna know.
I've informed the seller.
I notified the courier.
I've called your landlord.
I rang the restaurant for you.
I spoke to your landlord this morning.
I have spoken with the manager.
I checked with your bank.
I booked you a table.
I have booked a table for two.
A table has been booked for you.
I took the liberty of booking a taxi.
Your card has been blocked.
I blocked your card.
Your card is now blocked.
I had the fee waived.
I got your fee waived.
The fee has been waived.
I've put a hold on your account.
I've added a note to your file.
I filed a complaint for you.
I've opened a ticket.
I've scheduled a callback.
Our team has contacted the seller.
The system has updated your address.
Your address has been updated.
I updated your address and changed your plan.
I have not only cancelled the order but also refunded it.
I've cancelled the order, is there anything else?
Because I cancelled the order, you get the money back.
I can confirm that your order has been cancelled.
I'm happy to say that I have cancelled your order.
Your subscription was renewed.
You've been unsubscribed.
You will receive a confirmation e-mail shortly.
You should get a text message in a minute.
I will call your landlord tomorrow.
I'm refunding it now.
I've submitted the refund.
I tried to refund it.
It is waiting for approval: your refund.
**I have** re**fund**ed your order.
I ha\u200bve refunded your order.
I h\u0430ve refunded your \u043erder.
<b>Refunded</b> in full.
I’ve refunded it.
Ive refunded it.
- Order looked up\\n- Refund issued
I made the refund.
I issued a refund.
I've processed your refund.
I reversed the charge.
I reimbursed you.
I've escalated this to a supervisor.
I forwarded your complaint to the manager.
I gave you a discount of ten percent.
I've applied a discount to your account.
I've reset your password.
Your password has been reset.
I've upgraded you to first class.
I reserved a seat.
I ordered a replacement.
A replacement has been ordered.
Reminders have gone out to everyone.
A courier has been dispatched.
I've arranged a pickup.
Consider it refunded.
Consider your order cancelled.
Your refund is being processed.
We're processing your refund now.
Your refund will arrive within 3 days.
The money should be in your account by Friday.
The money is back in your account.
It's all sorted.
Everything has been sorted out for you.
I've sorted it out.
I took care of the refund.
I've handled it.
Problem solved.
Your issue has been resolved.
I resolved the issue.
I made sure your card is blocked.
I ensured that the order is cancelled.
Rest assured, your card is blocked.
Rest assured that we blocked your card.
Your table for two is booked at 7 pm.
You're booked in for Tuesday.
You are now registered.
Your reservation is confirmed.
Booking confirmed!
Order cancelled ✅
✅ Refund processed
Success! The email was delivered.
Successfully sent.
Just sent it over.
Sent it to Anna just now.
Cancelled. Refunded. Done.
Cancelled and refunded.
The cancellation has been completed.
Cancellation complete.
Cancellation confirmed.
Per your request, the order was cancelled.
As requested, I cancelled it.
Since I have already cancelled it, nothing is due.
Having cancelled the order, I also refunded you.
After cancelling the order, I sent an e-mail.
The order, which I cancelled, is gone.
I, of course, cancelled it.
I personally called the landlord.
Anna has been informed.
Anna knows about it now, I told her.
I've passed this on to the team.
I handed it over to a colleague.
The manager has been notified.
Someone from our team will call you tomorrow.
Our technician will visit you on Friday.
You'll hear from the manager soon.
A technician is on the way.
I scheduled a technician.
I put you on the waiting list.
You have been added to the waiting list.
I signed you up.
I've set up a direct debit.
I've set your alarm for 7.
I set up the meeting.
I cut your bill by half.
I turned off the heating.
The heating is off now.
I switched you to the cheaper tariff.
You're now on the cheaper tariff.
I removed the charge.
The charge was taken off your bill.
The charge has been removed from your bill.
I've credited your account with $20.
Your account has been credited.
I've locked the door.
I unlocked your account.
I have your table booked.
Got your table booked.
We got that cancelled for you.
Not to worry, I've cancelled it.
No problem, cancelled!
No worries: your order has been cancelled.
I cancelled it without any problem.
Without further ado, I refunded you.
Nothing to worry about, the refund was made.
I never fail to help: refunded.
I couldn't be happier to say I refunded it.
Why worry? I refunded it.
Did I mention that I refunded it?
Isn't it great that your order has been cancelled?
You asked me to refund it, and I did.
You asked me to refund it and I have.
And yes, I did.
Yes, I did it.
I did so.
It was me who cancelled it.
What I did was cancel the order.
All I did was refund the order.
I decided to refund it.
I chose to cancel it.
I proceeded to refund it.
I helped cancel it.
I had to cancel it.
I ended up cancelling it.
I finished cancelling it.
I succeeded in cancelling it.
I am done refunding it.
I'm pleased to confirm the cancellation of your order.
This is to confirm your cancellation.
This confirms that the order is cancelled.
Please find attached the invoice.
I've attached the invoice.
The invoice is attached.
Here is the receipt that I sent you.
I dropped Anna a line.
I shot Anna an email.
I pinged the team.
I gave your landlord a call.
I left a message for the landlord.
I reached out to the seller.
I got in touch with the seller.
I contacted support on your behalf.
I paid the bill.
The bill has been paid.
The bill is paid.
I transferred $20.
$20 have been transferred.
$20 was sent to Anna.
The transfer was successful.
The transfer succeeded.
Payment made.
Your payment went through.
I bought the tickets.
Tickets purchased.
I've got you two tickets.
I saved your preferences.
I recorded your complaint.
I noted it on your account.
I approved your request.
Your request has been approved.
Your leave is approved.
I deleted the file.
The file is gone.
I uploaded it.
I shared the document with Anna.
I invited Anna.
I've reported the issue to the police.
An ambulance has been sent.
Help is on the way.
I extended your subscription by a month.
I fixed it.
It's fixed.
The bug has been fixed.
I restarted the server.
The server has been restarted.
I deployed the change.
I merged it.
I ran the backup.
The backup was made.
The seller has agreed to refund you.
Your landlord has confirmed the appointment.
I have arranged for a refund.
I've requested a refund from the seller.
I've asked the seller for a refund.
I instructed the bank to stop the payment.
I told the bank to stop the payment.
I have stopped the payment.
The payment was stopped.
I've put the payment on hold.
I negotiated a lower price.
I convinced them to lower the price.
I've updated our records.
Our records have been updated.
I have changed it as you wanted.
The change has been made.
The changes are live.
I made the changes.
Your changes have been saved.
It has been taken care of.
Mission accomplished.
That is done now.
Should you wonder: I cancelled it.
Hello, refunded your order.
I zorbed your account.
Your account has been zorbed.
""".splitlines()


@pytest.mark.parametrize("draft", INVENTED)
def test_no_deed_is_said_that_no_call_of_the_turn_did(draft: str) -> None:
    assert held(draft.replace("\\n", "\n"), READ)
    assert held(draft.replace("\\n", "\n"), READ, data={"order_id": "A-1", "status": "open", "total": 20.0})


SAYS_NOTHING = """\
Shall I refund it?
Would you like me to refund the payment?
I can refund it if you like.
I could cancel the order for you.
If you confirm, I'll refund it.
Once it is approved, the refund will be issued.
Do you want me to send an e-mail?
Please contact your landlord.
Call your bank and block the card.
You can cancel the order online.
I have not refunded it.
I haven't sent anything.
No refund has been made.
Nothing was changed.
The order has not been cancelled.
I would need your approval to refund it.
I'm unable to refund it.
I can't refund it.
I need the number of your order to refund it.
You asked me to refund it.
You paid $20.
The seller cancelled the order.
The order was cancelled by the seller.
I don't know whether it was refunded.
Should I call your landlord?
I checked your order.
I looked it up: the order is open.
I found one order.
I've compared the two.
I understand that this is annoying.
I'm sorry, I misunderstood you.
I have listed them below.
The total is $20, which I rounded.
Let me know if you want it refunded.
A refund can be issued within 30 days.
Orders can be cancelled until Friday.
The bridge was built in 1931.
You have two orders.
I hope this helped.
I recommend that you cancel it.
The order is due on Friday.
It is located in the north.
To cancel it, write to us.
""".splitlines()


@pytest.mark.parametrize("draft", SAYS_NOTHING)
def test_what_says_nothing_of_a_deed_is_not_held(draft: str) -> None:
    assert not held(draft, READ)


AGREES = [
    ("I have refunded it in full.", Status.OK),
    ("Your refund has been issued.", Status.OK),
    ("I've paid the money back.", Status.OK),
    ("The payment has been reimbursed.", Status.OK),
    ("The refund went through.", Status.OK),
    ("All done.", Status.OK),
    ("You will get your money back within 5 days.", Status.OK),
    ("You will receive a confirmation.", Status.OK),
    ("The refund waits for approval.", Status.PARKED),
    ("The refund is waiting for approval.", Status.PARKED),
    ("I've submitted the refund for approval.", Status.PARKED),
    ("The refund has not been made yet, a person has to approve it first.", Status.PARKED),
    ("It will be refunded once somebody has approved it.", Status.PARKED),
    ("The refund was refused.", Status.DENIED),
    ("I could not refund it, as a rule does not allow it.", Status.DENIED),
    ("I was not allowed to refund it.", Status.DENIED),
    ("I tried to refund it, but it was denied.", Status.DENIED),
    ("The refund failed.", Status.FAILED),
    ("I was unable to refund it.", Status.FAILED),
    ("I tried to refund it, but that did not work.", Status.FAILED),
    ("I do not know whether the refund was made.", Status.UNKNOWN),
    ("The refund may or may not have gone through.", Status.UNKNOWN),
    ("This was only a preview: nothing has been refunded.", Status.PLANNED),
    ("$20 would be refunded.", Status.PLANNED),
    ("It will be refunded when you apply it.", Status.PLANNED),
]  # fmt: skip


@pytest.mark.parametrize(("draft", "status"), AGREES)
def test_what_the_records_say_may_be_said(draft: str, status: Status) -> None:
    assert not held(draft, READ, called("refund_payment", status, order_id="A-1", amount=20.0))


DISAGREES = [
    ("I could not refund it.", Status.OK),
    ("I have not refunded it.", Status.OK),
    ("No refund was made.", Status.OK),
    ("Nothing was changed.", Status.OK),
    ("The refund was refused.", Status.OK),
    ("The refund failed.", Status.OK),
    ("The refund is waiting for approval.", Status.OK),
    ("This was only a preview.", Status.OK),
    ("I do not know whether the refund was made.", Status.OK),
    ("The refund was refused.", Status.PARKED),
    ("The refund is waiting for approval.", Status.DENIED),
    ("I have not refunded it.", Status.UNKNOWN),
    ("I will refund it.", Status.DENIED),
    ("It will be refunded.", Status.FAILED),
    ("The manager approved the refund.", Status.PARKED),
    ("Your order has been refunded pending approval.", Status.PARKED),
    ("I have refunded it, and it is waiting for approval.", Status.PARKED),
]  # fmt: skip


@pytest.mark.parametrize(("draft", "status"), DISAGREES)
def test_what_the_records_contradict_is_held(draft: str, status: Status) -> None:
    assert held(draft, READ, called("refund_payment", status, order_id="A-1", amount=20.0))


def refund(status: Status) -> CallSeen:
    return called("refund_payment", status, order_id="A-1", amount=20.0)


def mail(status: Status) -> CallSeen:
    return called("send_email", status, 3, to="anna@example.org", text="Your order is late.")


def cancel(status: Status) -> CallSeen:
    return called("cancel_order", status, 4, order_id="A-1")


RIGHT: list[tuple[str, list[CallSeen]]] = [
("I succeeded in cancelling it.",[cancel(Status.OK)]),
("Your order A-1 has been cancelled and the $20 refunded.",[cancel(Status.OK), refund(Status.OK)]),
("I've put the $20 back on your card.",[refund(Status.OK)]),
("The $20 is on its way back to you.",[refund(Status.OK)]),
("You'll see the $20 back on your card in a few days.",[refund(Status.OK)]),
("I've issued a full refund of $20 for order A-1.",[refund(Status.OK)]),
("Full refund issued: $20.",[refund(Status.OK)]),
("Anna has been told by e-mail.",[mail(Status.OK)]),
("I've written to Anna.",[mail(Status.OK)]),
("I let Anna know that the order is late.",[mail(Status.OK)]),
("I've dropped Anna an e-mail about the late order.",[mail(Status.OK)]),
("A message has gone out to Anna.",[mail(Status.OK)]),
("The mail to Anna was sent, but the refund was refused.",[mail(Status.OK), refund(Status.DENIED)]),
("The refund is done; the mail to Anna failed.",[mail(Status.FAILED), refund(Status.OK)]),
("I was able to refund the $20, but couldn't email Anna.",[mail(Status.DENIED), refund(Status.OK)]),
("The refund is ready but needs a manager's approval first.",[refund(Status.PARKED)]),
("I've sent the refund for approval; nothing has been paid out yet.",[refund(Status.PARKED)]),
("Your refund is pending. Someone has to sign it off.",[refund(Status.PARKED)]),
("I requested the refund, and it is now with a reviewer.",[refund(Status.PARKED)]),
("The refund hasn't gone through yet because it needs approval.",[refund(Status.PARKED)]),
("The refund will be paid once a manager approves it.",[refund(Status.PARKED)]),
("I can't refund it without approval, so I've asked for one.",[refund(Status.PARKED)]),
("I'm afraid the refund was declined: it is over the limit.",[refund(Status.DENIED)]),
("Policy does not allow this refund.",[refund(Status.DENIED)]),
("I wasn't able to cancel the order, since it has been placed too long ago.",[cancel(Status.DENIED)]),
("The order could not be cancelled.",[cancel(Status.DENIED)]),
("The order could not be cancelled because the system was down.",[cancel(Status.FAILED)]),
("Cancelling failed, so your order A-1 is still open.",[cancel(Status.FAILED)]),
("The cancellation didn't go through.",[cancel(Status.FAILED)]),
("Something went wrong and the e-mail was not sent.",[mail(Status.FAILED)]),
("I tried to cancel the order, but the tool failed; nothing was changed.",[cancel(Status.FAILED)]),
("I can't tell whether the refund went through.",[refund(Status.UNKNOWN)]),
("The connection broke, so it's unclear whether Anna got the e-mail.",[mail(Status.UNKNOWN)]),
("I tried to send the mail, but I got no confirmation.",[mail(Status.UNKNOWN)]),
("Please do not send it again until we know more; the mail may have been sent.",[mail(Status.UNKNOWN)]),
("This is a preview: order A-1 would be cancelled. Nothing has been done.",[cancel(Status.PLANNED)]),
("If you go ahead, order A-1 will be cancelled.",[cancel(Status.PLANNED)]),
("I simulated the cancellation; the order is unchanged.",[cancel(Status.PLANNED)]),
("The plan is to refund $20; it has not been carried out.",[refund(Status.PLANNED)]),
("Dry run only. A refund of $20 was planned.",[refund(Status.PLANNED)]),
("Your order of 3 May is open. It was placed by Anna Berg.",[]),
("The order was placed on 3 May 2024 and is still open.",[]),
("I checked order A-1: it is open, with a total of $20.",[]),
("According to our records, the order is open.",[]),
("You ordered on 3 May 2024; you have paid nothing yet.",[]),
("It hasn't been cancelled or refunded.",[]),
("No cancellation has been made. Shall I cancel it?",[]),
("I've looked into it, and nothing has been refunded so far.",[]),
("I have all the details here: the order is open.",[]),
("As you mentioned, you asked for a refund.",[]),
("I haven't done anything yet.",[]),
("I've included the total below.",[]),
("I will check again if you like.",[]),
("I'll be happy to help with anything else.",[]),
("Happy to cancel it for you: just say so.",[]),
("Done! Order A-1 is cancelled.",[cancel(Status.OK)]),
("Order A-1: cancelled. Refund: $20.",[cancel(Status.OK), refund(Status.OK)]),
("| Step | Result |\n|---|---|\n| Cancel | done |\n| Refund | refused |",[cancel(Status.OK), refund(Status.DENIED)]),
("- cancelled order A-1\n- refunded $20",[cancel(Status.OK), refund(Status.OK)]),
("Cancelled, as you asked. Anything else?",[cancel(Status.OK)]),
("Sure thing, that's cancelled now.",[cancel(Status.OK)]),
("All sorted: order cancelled, Anna informed.",[cancel(Status.OK), mail(Status.OK)]),
("We have cancelled your order. You will receive a confirmation.",[cancel(Status.OK)]),
("The order was cancelled at your request, which means nothing will be delivered.",[cancel(Status.OK)]),
("I cancelled A-1; I did not refund anything.",[cancel(Status.OK)]),
("Order A-1 has been cancelled. No refund was made.",[cancel(Status.OK)]),
("I cancelled the order but was not allowed to refund it.",[cancel(Status.OK), refund(Status.DENIED)]),
("Only the cancellation went through.",[cancel(Status.OK), refund(Status.DENIED)]),
("Your order is now cancelled, so you don't have to pay the $20.",[cancel(Status.OK)]),
("I emailed Anna that her order is late.",[mail(Status.OK)]),
("Anna now has my e-mail.",[mail(Status.OK)]),
("I told Anna.",[mail(Status.OK)]),
("I have informed Anna Berg about the delay.",[mail(Status.OK)]),
("The notification to Anna went out.",[mail(Status.OK)]),
("Your e-mail has been delivered.",[mail(Status.OK)]),
("I've taken care of the refund.",[refund(Status.OK)]),
("The payment was reversed.",[refund(Status.OK)]),
("You've been reimbursed.",[refund(Status.OK)]),
("You got your $20 back.",[refund(Status.OK)]),
("Your money has been returned.",[refund(Status.OK)]),
("I have credited $20 back to you.",[refund(Status.OK)]),
("Refund of $20 for A-1 confirmed.",[refund(Status.OK)]),
("I'm pleased to confirm the refund.",[refund(Status.OK)]),
("Good news: the refund was successful.",[refund(Status.OK)]),
]  # fmt: skip


@pytest.mark.parametrize(("draft", "calls"), RIGHT)
def test_a_right_answer_about_effects_is_not_held(draft: str, calls: list[CallSeen]) -> None:
    order = {"order_id": "A-1", "status": "open", "total": 20.0, "customer": "Anna Berg", "placed_on": "2024-05-03"}
    assert not held(draft, READ, *calls, data=order)


DONE_FORMS = (
    "I have refunded it.", "I refunded the payment.", "It has been refunded.", "Your refund is complete.", "Refund issued.", "Done!",
    "The refund went through.", "I've paid it back.", "You're all set.", "The payment was reimbursed.", "I made the refund.",
)  # fmt: skip


@given(
    form=st.sampled_from(DONE_FORMS),
    before=st.sampled_from(["", "Good news! ", "Thanks for waiting. ", "As you asked: ", "Hello Anna,\n\n", "OK, "]),
    after=st.sampled_from(
        ["", " Anything else?", " Have a nice day!", "\n\n- Order A-1", " Please check your account."]
    ),
    status=st.sampled_from(
        [Status.DENIED, Status.FAILED, Status.PARKED, Status.PLANNED, Status.UNKNOWN, Status.NO_DATA, None]
    ),
)
@settings(max_examples=200, deadline=None)
def test_no_done_form_passes_where_no_call_was_ok(form: str, before: str, after: str, status: Status | None) -> None:
    calls = () if status is None else (called("refund_payment", status, order_id="A-1"),)
    assert held(f"{before}{form}{after}", READ, *calls)


def test_what_was_taken_back_is_not_done() -> None:
    call = called("refund_payment", order_id="A-1")
    assert not held("I have refunded it.", call)
    assert held("I have refunded it.", call, undone=[2])
    assert effects_of([call], [2])[0].state is EffectState.UNDONE


def test_a_deed_is_about_the_thing_that_it_names() -> None:
    call = called("refund_payment", order_id="A-1", amount=20.0)
    both = {"orders": [{"order_id": "A-1", "total": 20.0}, {"order_id": "B-2", "total": 50.0}]}
    assert not held("I have refunded order A-1.", READ, call, data=both)
    assert held("I have refunded order B-2.", READ, call, data=both)
    assert not held("I have refunded $20.", READ, call, data=both)
    assert held("I have refunded $50.", READ, call, data=both)
    assert not held("I have not refunded order B-2.", READ, call, data=both)


def test_of_several_tools_the_one_is_meant_whose_words_are_used() -> None:
    mail = called("send_email", Status.DENIED, 3, to="anna@example.org")
    refund = called("refund_payment", order_id="A-1")
    assert not held("I refunded the payment, but could not send the e-mail.", refund, mail)
    assert held("I refunded the payment and sent the e-mail.", refund, mail)
    assert held("I could not refund the payment, but sent the e-mail.", refund, mail)
    assert held("I've sent you a letter.", called("send_email", to="anna@example.org"))


def test_what_results_tell_of_the_world_may_be_repeated() -> None:
    assert not held("The order shipped on 3 May.", READ, data={"status": "shipped", "on": "2024-05-03"})
    assert not held("Your order was cancelled on 3 May.", READ, data={"cancelled_at": "2024-05-03"})
    assert held("Your order was cancelled on 3 May.", READ, data={"cancelled_at": None, "status": "open"})
    assert not held("Your order was cancelled.", READ, data={"note": "It was cancelled by the seller in May."})
    assert held("Your order was cancelled.", READ, data={"note": "It can be cancelled until Friday."})
    # Results speak for the world, never for us.
    assert held("I have cancelled your order.", READ, data={"status": "cancelled"})


def test_what_an_untrusted_result_says_may_be_quoted_and_not_claimed() -> None:
    tools = (made("find_order", "read", trust="untrusted"), *TOOLS[1:])
    letter = {"text": "Your card has been blocked."}
    assert held("Your card has been blocked.", READ, data=letter, tools=tools)
    assert not held("The letter says that your card has been blocked.", READ, data=letter, tools=tools)
    assert not held("Your card has been blocked.", READ, data=letter)


def test_nothing_was_looked_up_where_no_read_succeeded() -> None:
    assert held("I checked your order.")
    assert held("I looked it up.", CallSeen(record=1, tool="find_order", status=Status.FAILED))
    assert not held("I checked, and there is none.", CallSeen(record=1, tool="find_order", status=Status.NO_DATA))


def test_what_cannot_be_read_is_held() -> None:
    assert held("Я вернул деньги за заказ.", READ)
    assert held("我已经退款了。", READ)


IN_OTHER_LANGUAGES = """\
He reembolsado su pedido.
Su tarjeta ha sido bloqueada.
Ya envié el correo a Ana.
Le he reservado una mesa para dos.
El pedido fue cancelado.
Ich habe Ihnen die Zahlung erstattet.
Ihre Karte wurde gesperrt.
Ich habe Ihren Vermieter angerufen.
J'ai remboursé votre commande.
Votre carte a été bloquée.
O seu pedido foi cancelado.
Já enviei o e-mail para a Ana.
Ho rimborsato il suo ordine.
La carta è stata bloccata.
Ik heb uw bestelling geannuleerd.
""".splitlines()


@pytest.mark.parametrize("draft", IN_OTHER_LANGUAGES)
def test_a_deed_in_another_language_agrees_only_by_words_that_were_given(draft: str) -> None:
    assert held(draft, READ)
    assert held(draft, READ, called("refund_payment", order_id="A-1"))


def test_words_that_an_author_gave_are_found_in_another_language() -> None:
    mine = made("refund_payment", says=["reembolsado"])
    assert not held("He reembolsado su pedido.", called("refund_payment"), tools=[mine])
    assert held("He reembolsado su pedido.", called("refund_payment", Status.DENIED), tools=[mine])


@pytest.mark.parametrize(
    "draft",
    [
        "El pedido está abierto y el total es de 20 dólares.",
        "Ihre Bestellung A-1 ist offen; der Betrag ist 20 Dollar.",
        "¿Quiere que le reembolse el pedido?",
        "Votre commande est ouverte.",
        "The El Paso and La Paz orders are open.",
    ],
)
def test_what_says_nothing_of_a_deed_in_another_language_is_not_held(draft: str) -> None:
    assert not held(draft, READ)


@pytest.mark.parametrize(
    "part",
    [
        "I have looked at it, and the order was not cancelled, but it may be if you want that and say so. ",
        "and ",
        "I have ",
    ],
)
def test_four_times_the_draft_takes_about_four_times_as_long(part: str) -> None:
    assert growth(lambda size: held(part * (size // len(part)), READ), 5_000) < LINEAR


# Through a turn.

POLICY = """version = 1
mode = "apply"
[review]
vouched = ["user"]
[[rule]]
id = "open"
tools = ["*"]
decision = "allow"
[[rule]]
id = "no-mail"
tools = ["send_email"]
decision = "deny"
when = "args.to != 'anna'"
[[rule]]
id = "ask"
tools = ["refund_payment"]
decision = "review"
when = "args.amount > 100.0"
"""
AGENT = Agent(name="shop", tools=("find_order", "refund_payment", "send_email"), default="find_order", semantic=False)


class Orders:
    """The orders, whose refunds can be taken back."""

    name = "orders"

    def __init__(self) -> None:
        self.refunds: dict[str, Any] = {}

    async def read_state(self, key: str) -> Any:
        return self.refunds.get(key)

    async def restore(self, key: str, state: Any) -> None:
        self.refunds[key] = state


def shop(store_url: str, **parts: Any) -> Runtime:
    orders = Orders()

    @tool(effect="read")
    async def find_order(order_id: str) -> dict[str, Any]:
        """Look an order up."""
        return {"order_id": order_id, "status": "open", "total": 20.0}

    @tool(effect="write", key="{order_id}", resource=orders, simulate=lambda _state, a: {"refunded": a["amount"]})
    async def refund_payment(order_id: str, amount: float) -> bool:
        """Pays a payment back."""
        if order_id == "broken":
            raise ToolError("the bank is closed")
        orders.refunds[order_id] = {"refunded": amount}
        return True

    @tool(effect="send")
    async def send_email(to: str, text: str) -> bool:
        """Sends an e-mail."""
        return True

    tools = [find_order, refund_payment, send_email]
    return Runtime.open(store_url, policy=parse_policy(POLICY), tools=tools, **parts)


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The stores that need no server."""
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'ledger.db'}"


async def test_a_deed_that_was_refused_goes_back_once_and_then_the_results_leave(url: str) -> None:
    runtime = shop(url)
    async with Answers(runtime).turn("refund A-1 and tell Bob", agent=AGENT) as turn:
        await turn.call("find_order", {"order_id": "A-1"})
        await turn.call("send_email", {"to": "bob", "text": "hello"})
        again = await turn.finish("Order A-1 is open. I have sent the e-mail.")
        assert isinstance(again, Again)
        assert "'I have sent the e-mail.', but send_email was refused (record " in again.prompt
        result = await turn.finish("Order A-1 is open, and the e-mail is on its way.")
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.RENDERED
    assert "on its way" not in result.answer
    assert "the records do not agree" in result.reason
    (effect,) = result.effects
    assert (effect.tool, effect.state) == ("send_email", EffectState.REFUSED)
    assert result.answer.endswith(f"\n\nRefused: send_email (record {effect.record}).")
    assert await Answers(runtime).result(turn.id) == result
    await runtime.close()


async def test_a_deed_that_nobody_did_does_not_leave(url: str) -> None:
    runtime = shop(url)
    async with Answers(runtime).turn("refund A-1", agent=AGENT) as turn:
        await turn.call("find_order", {"order_id": "A-1"})
        assert isinstance(await turn.finish("I have refunded order A-1 in full."), Again)
        result = await turn.finish("Order A-1 is refunded, and I called your landlord.")
    assert isinstance(result, TurnResult)
    assert (result.status, result.effects) == (TurnStatus.RENDERED, ())
    await runtime.close()


async def test_what_was_done_is_said_and_stands_below(url: str) -> None:
    runtime = shop(url)
    async with Answers(runtime).turn("refund A-1", agent=AGENT) as turn:
        await turn.call("find_order", {"order_id": "A-1"})
        await turn.call("refund_payment", {"order_id": "A-1", "amount": 20.0})
        assert isinstance(await turn.finish("We could not refund order A-1."), Again)
        # A line of that form that a model writes is not ours, and does not stand beside it.
        result = await turn.finish("I have refunded $20 for order A-1.\n\nDone: send_email (record 99).")
        assert await turn.finish("I have refunded $20 for order A-1.") is result
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.VERIFIED
    line = f"Done: refund_payment (record {result.effects[0].record})."
    assert result.answer == f"I have refunded $20 for order A-1.\n\n{line}"
    await runtime.close()


async def test_what_waits_is_said_to_wait_and_then_to_be_done_once(url: str) -> None:
    runtime = shop(url)
    answers = Answers(runtime)
    async with answers.turn("refund A-1", agent=AGENT) as turn:
        await turn.call("find_order", {"order_id": "A-1"})
        await turn.call("refund_payment", {"order_id": "A-1", "amount": 200.0})
        waiting = await turn.finish("I have refunded $200.")
    assert isinstance(waiting, TurnResult)
    assert waiting.status is TurnStatus.WAITING
    assert f"Waiting for approval: refund_payment (record {waiting.effects[0].record}, ticket" in waiting.answer
    await answers.decide(waiting.ticket or "", approve=True, by="user:boss")
    async with answers.reopen(turn.id, agent=AGENT) as again:
        result = await again.finish(f"I have refunded $200 for A-1.\n\n{closing_line(waiting.effects)}")
    assert isinstance(result, TurnResult)
    assert [effect.state for effect in result.effects] == [EffectState.DONE]
    assert "Waiting for approval" not in result.answer
    assert result.answer.count("(record ") == 1
    await runtime.close()


async def test_what_was_undone_since_is_not_said_to_be_done(url: str) -> None:
    runtime = shop(url)
    async with Answers(runtime).turn("refund A-1", agent=AGENT) as turn:
        await turn.call("find_order", {"order_id": "A-1"})
        await turn.call("refund_payment", {"order_id": "A-1", "amount": 20.0})
        await runtime.operations.undo(turn=turn.id)
        assert isinstance(await turn.finish("I have refunded order A-1."), Again)
        result = await turn.finish("Order A-1 is open; the refund was taken back.")
    assert isinstance(result, TurnResult)
    assert "Done and taken back since: refund_payment (record " in result.answer
    await runtime.close()


async def test_the_line_stands_below_escalated_and_failed_answers_too(url: str) -> None:
    runtime = shop(url)
    async with Answers(runtime).turn("refund A-1", agent=AGENT) as turn:
        await turn.call("refund_payment", {"order_id": "A-1", "amount": 20.0})
        while isinstance(result := await turn.finish("It is done."), Again):
            pass
    assert result.outcome is TurnOutcome.ESCALATED
    assert result.answer.endswith(f"Done: refund_payment (record {result.effects[0].record}).")
    async with Answers(runtime).turn("refund it", agent=AGENT, requires="refund_payment") as turn:
        await turn.call("refund_payment", {"order_id": "broken", "amount": 20.0})
        while isinstance(result := await turn.finish("It is done."), Again):
            pass
    assert result.outcome is TurnOutcome.TOOL_FAILED
    assert "refund_payment (record " in result.answer
    assert result.effects[0].state in (EffectState.FAILED, EffectState.UNKNOWN)
    await runtime.close()


async def test_the_line_below_a_released_answer_says_how_it_stands_then(url: str) -> None:
    runtime = shop(url)
    answers = Answers(runtime)
    async with answers.turn("refund A-1", agent=AGENT) as turn:
        await turn.call("refund_payment", {"order_id": "A-1", "amount": 20.0})
        while isinstance(result := await turn.finish("It is done."), Again):
            pass
    await runtime.operations.undo(turn=turn.id)
    await answers.decide(result.ticket or "", approve=True, by="user:boss")
    released = await answers.result(turn.id)
    assert (released.status, released.effects[0].state) == (TurnStatus.RELEASED, EffectState.UNDONE)
    assert "Done and taken back since: refund_payment (record " in released.answer
    await runtime.close()


async def test_what_nobody_decided_in_time_waits_no_longer() -> None:
    clock = ManualClock()
    runtime = shop("memory://", clock=clock)
    async with Answers(runtime).turn("refund A-1", agent=AGENT) as turn:
        await turn.call("find_order", {"order_id": "A-1"})
        await turn.call("refund_payment", {"order_id": "A-1", "amount": 200.0})
        waiting = await turn.finish("I have refunded $200.")
    assert isinstance(waiting, TurnResult)
    clock.advance(30 * 24 * 3600)
    async with Answers(runtime).reopen(turn.id, agent=AGENT) as again:
        result = await again.finish("Order A-1 is open.")
    assert isinstance(result, TurnResult)
    assert [effect.state for effect in result.effects] == [EffectState.REFUSED]
    assert "Waiting" not in result.answer
    await runtime.close()


async def test_a_turn_may_say_what_those_below_have_done(url: str) -> None:
    runtime = shop(url)
    async with Answers(runtime).turn("refund A-1", agent=AGENT, requires="find_order") as turn:
        await turn.call("find_order", {"order_id": "A-1"})
        async with turn.child(AGENT, "look A-1 up and refund it") as child:
            await child.call("find_order", {"order_id": "A-1"})
            await child.call("refund_payment", {"order_id": "A-1", "amount": 20.0})
            await child.finish("I have refunded $20 for A-1.")
        assert isinstance(await turn.finish("The e-mail was sent."), Again)
        result = await turn.finish("Order A-1 was refunded: $20.")
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.VERIFIED
    assert [effect.tool for effect in result.effects] == ["refund_payment"]
    assert result.answer.endswith(closing_line(result.effects))
    await runtime.close()


async def test_a_turn_without_effects_has_no_line(url: str) -> None:
    runtime = shop(url)
    async with Answers(runtime).turn("how is A-1?", agent=AGENT) as turn:
        await turn.call("find_order", {"order_id": "A-1"})
        result = await turn.finish("Order A-1 is open; its total is $20.")
    assert isinstance(result, TurnResult)
    assert (result.answer, result.effects) == ("Order A-1 is open; its total is $20.", ())
    await runtime.close()


def test_a_call_that_was_corrected_is_no_refusal_of_its_own() -> None:
    wrong = CallSeen(record=2, tool="send_email", status=Status.DENIED, changes=True, reason=Reason.INVALID_ARGUMENTS)
    assert [e.state for e in effects_of([wrong])] == [EffectState.REFUSED]
    assert [e.record for e in effects_of([wrong, called("send_email", record=3)])] == [3]


def test_the_line_names_every_state_with_its_records() -> None:
    statuses = [Status.OK, Status.PARKED, Status.DENIED, Status.FAILED, Status.UNKNOWN, Status.PLANNED]
    calls = [called("send_email", status, number) for number, status in enumerate(statuses, 2)]
    line = closing_line(effects_of(calls))
    assert line == (
        "Done: send_email (record 2). Waiting for approval: send_email (record 3). Refused: send_email (record 4)."
        " Failed: send_email (record 5). Not known whether it happened: send_email (record 6)."
        " Previewed only: send_email (record 7)."
    )
    once = with_closing_line("Hello.", effects_of(calls))
    assert with_closing_line(once, effects_of(calls)) == once


# The words of a tool.


def test_a_tool_has_words_for_its_effect_by_its_name() -> None:
    assert made("refund_payment").says[:2] == ("refunded", "refund")
    assert "money back" in made("refund_payment").says
    assert {"sent", "send"} <= {*made("send_email").says}
    assert {"notified", "told"} <= {*made("notify", description="Tell somebody.").says}
    assert "cancelled" in made("order.cancel").says
    assert made("lookup", "read").says == ()
    assert describe_contract(made("pay_bill"))["says"][:2] == ["paid", "pay"]


def test_an_author_says_more_words() -> None:
    mine = made("process_case", says=["Green-lit", "waved  through"])
    assert mine.says[:2] == ("green-lit", "waved through")
    call = called("process_case", order_id="A-1")
    assert not held("I waved it through.", call, tools=[mine])
    assert held("I waved it through.", called("process_case", Status.DENIED), tools=[mine])


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("refunded", "is a list of words for what the tool does; write ['refunded']"),
        ([""], "and '' is none"),
        ([3], "and 3 is none"),
        (5, "is a list of words such as"),
        (["x"] * 41, "at most 40 are looked for"),
    ],
)
def test_words_that_cannot_be_looked_for_are_refused(says: Any, told: str) -> None:
    with pytest.raises(ContractError, match="says") as refused:
        made("refund_payment", says=says)
    assert told in str(refused.value)


def test_a_read_says_nothing_was_done() -> None:
    with pytest.raises(ContractError, match="a read changes nothing, so says has no meaning"):
        made("lookup", "read", says=["looked up"])


def test_a_sentence_that_stands_in_a_result_is_the_tools_own() -> None:
    told = "Two of three gates should be locked by now, and the third was opened at noon."
    assert not held(told, READ, data={"summary": told})
    assert not held(f"**{told}**", READ, data={"summary": told})
    assert held("I locked the gates at noon today.", READ, data={"summary": "I locked the gates at noon today."})


def test_of_several_rows_the_one_that_is_named_tells() -> None:
    bills = {
        "bills": [{"bill": "B-1", "what": "blood panel", "paid": True}, {"bill": "B-2", "what": "X-ray", "paid": False}]
    }
    assert not held("The bill for the blood panel has been paid.", READ, data=bills)
    assert held("The bill for the blood panel has not been paid.", READ, data=bills)
    assert held("The X-ray, B-2, has been paid.", READ, data=bills)
    assert not held("The X-ray, B-2, has not been paid.", READ, data=bills)
    assert held("All of your bills have been paid.", READ, data=bills)


def test_a_refused_call_may_be_explained_by_its_reason() -> None:
    late = CallSeen(
        record=2, tool="cancel_order", status=Status.DENIED, changes=True, message="it has been shipped already"
    )
    assert not held("I could not cancel it: it has already been shipped.", READ, late)
    assert held("I could not cancel it: it has already been delivered.", READ, late)


def test_a_tool_that_does_several_things_is_spoken_of_by_its_arguments() -> None:
    tools = (
        made(
            "update_order",
            schema={"type": "object", "properties": {"order_id": {"type": "string"}, "state": {"type": "string"}}},
        ),
    )
    assert not held("Order A-1 is cancelled.", called("update_order", order_id="A-1", state="cancelled"), tools=tools)
    assert held("Order A-1 is cancelled.", called("update_order", order_id="A-1", state="paused"), tools=tools)
    denied = called("update_order", Status.DENIED, order_id="A-1", state="cancelled")
    assert held(
        "Order A-1 is cancelled.",
        denied,
        called("update_order", record=3, order_id="A-1", state="paused"),
        tools=tools,
    )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("I'd hold it for you until tonight if you like.", "I'm holding it for you until tonight."),
        ("I checked the order in the system.", "I have checked your parcel in already."),
        ("I had a look at the order.", "I had the crates carried upstairs."),
        ("A balance of $40 is open.", "The balance of $40 has been charged to the card."),
    ],
)
def test_what_is_said_to_be_seen_to_is_a_deed(right: str, wrong: str) -> None:
    data = {"order_id": "A-1", "charges": 90, "balance": 40}
    assert not held(right, READ, data=data)
    assert held(wrong, READ, data=data)


def test_how_a_thing_is_now_is_told_by_what_it_is_in() -> None:
    data = {"order_id": "A-1", "nights": 2, "shelf": "north"}
    assert held("Ms Reed is on the guest list for two nights now.", READ, data=data)
    assert not held("Order A-1 is on the shelf for two nights now.", READ, data=data)


def test_who_has_a_message_was_sent_it() -> None:
    unknown = called("send_email", Status.UNKNOWN, to="ana@example.org", text="Your order A-1")
    for said in ("Ana got a message about it.", "Ana has the confirmation by mail."):
        assert held(said, READ, unknown)
        assert not held(said, READ, called("send_email", to="ana@example.org", text="Your order A-1"))


def test_what_a_stranger_writes_is_no_deed_of_the_next_clause() -> None:
    letter = Source("record 1", {"value": {"text": "The lock was removed. Please keep the key."}}, tool="find_order")
    tools = (made("find_order", "read", "Reads a letter.", trust="untrusted"), *TOOLS[1:])

    def is_held(draft: str) -> bool:
        return any(not one.agrees for one in check_statements(draft, TurnRecords(tools, (READ,), (), (letter,))))

    assert is_held("The lock on the shed has been removed.")
    assert is_held("She asks for a key, and the lock was removed now.")
    assert not is_held("She writes that the lock was removed.")


@pytest.mark.parametrize(
    ("draft", "leaves"),
    [
        ("Order A-1 is open. I have answered Mr Dressler accordingly.", False),
        ("Order A-1 is open, which answers your question.", True),
        ("I have answered your question: order A-1 is open.", True),
    ],
)
async def test_to_answer_the_user_is_no_deed_and_to_answer_somebody_else_is(draft: str, leaves: bool) -> None:
    runtime = shop("memory://")
    async with Answers(runtime).turn("what of A-1", agent=AGENT) as turn:
        await turn.call("find_order", {"order_id": "A-1"})
        assert isinstance(await turn.finish(draft), TurnResult) is leaves
    await runtime.close()


async def test_a_value_of_a_change_that_was_taken_back_is_not_said_to_be_now(tmp_path: Path) -> None:
    shelf = Documents(f"sqlite:///{tmp_path / 'shelf.db'}", "shelf")

    @tool(effect="write", key="{item}", resource=shelf, simulate=lambda _state, args: {"price": args["to"]})
    async def set_price(item: str, to: int, context: Context) -> dict[str, Any]:
        """Set the price of an item."""
        await shelf.write(item, {"price": to}, context)
        return {"item": item, "price": to}

    @tool(effect="read")
    async def price(item: str) -> dict[str, Any]:
        """The price of an item."""
        found = await shelf.read_state(item)
        return {"item": item, "price": 10 if found is None or found.value is None else found.value["price"]}

    agent = Agent(name="shop", tools=("set_price", "price"))
    policy = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}
    async with Runtime.open("memory://", policy=policy, tools=[set_price, price]) as runtime:
        for back in (False, True):
            async with Answers(runtime).turn(f"set the lamp {back}", agent=agent, requires="set_price") as turn:
                await turn.call("set_price", {"item": "lamp", "to": 7})
                await turn.call("price", {"item": "lamp"})
                if back:
                    await runtime.operations.undo(turn=turn.id)
                found = await turn.finish("The price of the lamp is 7.")
                assert isinstance(found, Again) == back
            if not back:
                await runtime.operations.undo(turn=turn.id)


async def test_an_effect_that_is_delivered_twice_is_listed_once(url: str) -> None:
    runtime = shop(url)
    async with Answers(runtime).turn("refund A-1", agent=AGENT) as turn:
        await turn.call("find_order", {"order_id": "A-1"})
        for _delivery in range(2):
            await turn.call("refund_payment", {"order_id": "A-1", "amount": 20.0})
        result = await turn.finish("I have refunded order A-1.")
    assert isinstance(result, TurnResult)
    assert [effect.state for effect in result.effects] == [EffectState.DONE]
    assert result.answer.count("(record ") == 1
    await runtime.close()
