{#
    The channel of a message: email, sms, or another word of the service (an open set); unknown if the service
    doesn't name one.
    The service can only know for e-mails whether they were opened, so a channel is never assumed. #}
{% macro channel_of_type(type) -%}
    {{ _channel("lower(trim(" ~ type ~ "))") }}
{%- endmacro %}

{# From the key of a timeline entry: email-campaign-sent, mail-sent, sms-sent, browser-push-sent, … #}
{% macro channel_of_key(key) -%}
    {{ _channel("regexp_replace(" ~ key ~ ", '-?(campaign)?-?(sent)?$', '')") }}
{%- endmacro %}

{% macro _channel(word) -%}
    case
        when {{ word }} like '%sms%' then 'sms'
        when {{ word }} like '%mail%' then 'email'
        else coalesce(nullif({{ word }}, ''), 'unknown')
    end
{%- endmacro %}

{# Whether it can be known if the message was opened, so that it counts in the denominator of an open rate. For
   rows of contact_campaign. #}
{% macro can_tell_opening() -%}
    (channel = 'email' and is_opened is not null)
{%- endmacro %}
