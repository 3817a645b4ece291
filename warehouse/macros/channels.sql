{#
    The channel of a message: email, sms, or another word of the service, as it is an open set; unknown where
    the service tells none.
    Only of e-mails can the service know whether they were opened, so that a channel is never assumed.
#}
{% macro channel_of_type(type) -%}
    {{ _channel("lower(trim(" ~ type ~ "))") }}
{%- endmacro %}

{# Of the key of a timeline entry: email-campaign-sent, mail-sent, sms-sent, browser-push-sent, … #}
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

{# Whether it can be known if the message was opened, and so belongs below the line of an open rate; of rows
   of contact_campaign. #}
{% macro can_tell_opening() -%}
    (channel = 'email' and is_opened is not null)
{%- endmacro %}
